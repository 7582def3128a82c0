// Which pages the search lists first: a heading that is what was asked for, then pages of the guide.
// The numbers are those of Sphinx.
var Scorer = {
  score: ([docname, title, anchor, descr, score, filename, kind]) => {
    const isHeading = kind === "title" && score > 9;
    const isElsewhere = /^(api|evidence|gallery|math|repository)\//.test(docname);
    return score + (isHeading ? 10 : 0) - (isElsewhere ? 3 : 0);
  },
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};

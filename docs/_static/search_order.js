// Order of search results: first pages whose title has all words of the query, except those of the reference of names.
// The changelog comes last, because it has every word.
var Scorer = {
  score: ([page, title, , , score]) => {
    const words = (new URLSearchParams(location.search).get("q") ?? "").split(/\W+/).filter(Boolean);
    const inTitle = words.length > 0 && words.every((word) => new RegExp(`\\b${word}`, "i").test(title));
    if (page === "reference/changelog") return score - 100;
    return score + (inTitle && !page.startsWith("reference/api/") ? 100 : 0);
  },
  // the numbers of Sphinx
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};

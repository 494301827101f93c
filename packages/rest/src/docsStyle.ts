// How the page of the interface looks: one column for reading, a list of groups beside it, light or dark as the reader's system is.
// Everything is drawn from a few colours; a method and a role have one each.
export const docsStyle = `
:root {
  color-scheme: light dark;
  --page: #fbfaf7; --card: #ffffff; --ink: #1d2426; --soft: #5b676b; --line: #e3e0d8; --code: #f3f1ea;
  --water: #0b6e78; --get: #1b6ac9; --post: #1d7d46; --put: #9a6300; --patch: #7b45b8; --delete: #b8322c;
  --sans: system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "Liberation Sans", sans-serif;
  --mono: ui-monospace, "SF Mono", SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", "Liberation Mono", monospace;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #12181a; --card: #182023; --ink: #e4e8e6; --soft: #98a6a9; --line: #2a3639; --code: #0d1214;
    --water: #4cc3cd; --get: #74aef5; --post: #62c98b; --put: #e2ae55; --patch: #bd97ea; --delete: #f08a82;
  }
}
* { box-sizing: border-box; }
html { scroll-padding-top: 1.5rem; -webkit-text-size-adjust: 100%; }
body {
  margin: 0; background: var(--page); color: var(--ink); font: 1rem/1.6 var(--sans);
  display: grid; grid-template-columns: 15rem minmax(0, 1fr);
}
a { color: var(--water); text-decoration-thickness: 1px; text-underline-offset: .18em; }
:focus-visible { outline: 2px solid var(--water); outline-offset: 2px; border-radius: 4px; }
code, pre { font-family: var(--mono); font-size: .875em; }
p { margin: .6rem 0; max-width: 44rem; }
small { color: var(--soft); font-size: .8125rem; }
.skip { position: absolute; left: -100vw; }
.skip:focus { left: 1rem; top: 1rem; background: var(--card); padding: .5rem 1rem; z-index: 2; }

nav { border-right: 1px solid var(--line); padding: 2rem 1rem 2rem 1.75rem; position: sticky; top: 0; height: 100vh; overflow-y: auto; }
nav ul { list-style: none; margin: 1.25rem 0 0; padding: 0; }
nav li a { display: flex; justify-content: space-between; align-items: baseline; padding: .22rem .6rem; margin-left: -.6rem; border-radius: 6px; color: inherit; text-decoration: none; }
nav li a:hover { background: var(--code); color: var(--water); }
nav li span { color: var(--soft); font-size: .8125rem; font-variant-numeric: tabular-nums; }
.brand { margin: 0; }
.brand a { font-size: 1.25rem; font-weight: 700; letter-spacing: -.01em; text-decoration: none; }

main { padding: 2.5rem clamp(1rem, 4vw, 3.5rem) 6rem; max-width: 68rem; }
section { margin-bottom: 3.5rem; }
h1 { font-size: 2.25rem; line-height: 1.15; letter-spacing: -.02em; margin: 0 0 .5rem; }
h2 { font-size: 1.5rem; letter-spacing: -.01em; margin: 0 0 .25rem; text-transform: capitalize; }
h2 a { color: inherit; text-decoration: none; }
h2 a:hover::after { content: " #"; color: var(--soft); }
h3 { font-size: 1.0625rem; margin: 0 0 .5rem; }
h4 { font-size: .8125rem; letter-spacing: .05em; text-transform: uppercase; color: var(--soft); margin: 1.5rem 0 .4rem; }
h4 small { text-transform: none; letter-spacing: 0; font-weight: 400; }
.lead { font-size: 1.1875rem; color: var(--soft); margin-bottom: 1.25rem; }
.fine { color: var(--soft); margin: 0; }
.fine a { text-decoration: none; padding: 0 .25rem; }

.facts { display: grid; grid-template-columns: repeat(auto-fit, minmax(19rem, 1fr)); gap: 1rem; margin-top: 1.75rem; }
.facts > div { background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: 1.1rem 1.25rem; font-size: .9375rem; }
.facts ul { margin: 0; padding-left: 1.1rem; }
.facts li { margin: .3rem 0; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .35rem .9rem; margin: 0; }
dd { margin: 0; }
.facts code { white-space: nowrap; }

pre code { font-size: inherit; }
pre { background: var(--code); border: 1px solid var(--line); border-radius: 8px; padding: .8rem 1rem; margin: .4rem 0; overflow-x: auto; line-height: 1.5; tab-size: 2; }
p code, li code, td code { background: var(--code); padding: .1em .35em; border-radius: 4px; overflow-wrap: anywhere; }

.route { background: var(--card); border: 1px solid var(--line); border-radius: 10px; margin: .6rem 0; }
.route[open] { border-color: color-mix(in srgb, var(--water) 45%, var(--line)); }
.route > summary { display: grid; grid-template-columns: 5.75rem minmax(0, 1fr) auto; gap: .1rem .9rem; align-items: baseline; padding: .7rem 1.1rem; cursor: pointer; list-style: none; border-radius: 10px; }
.route > summary::-webkit-details-marker { display: none; }
.route > summary:hover .path { color: var(--water); }
.what { grid-column: 2 / -1; color: var(--soft); font-size: .9375rem; }
.path { font-size: .9375rem; font-weight: 600; overflow-wrap: anywhere; }
.path i { font-style: normal; color: var(--water); }
.who { display: flex; flex-wrap: wrap; gap: .3rem; justify-content: flex-end; }
.body { padding: .9rem 1.1rem 1.2rem; border-top: 1px solid var(--line); scroll-margin-top: 6.5rem; }

.methods { display: flex; flex-wrap: wrap; gap: .1rem .5rem; }
.method { font: 700 .8125rem/1.5 var(--mono); letter-spacing: .02em; color: var(--soft); }
.get { color: var(--get); } .post { color: var(--post); } .put { color: var(--put); } .patch { color: var(--patch); } .delete { color: var(--delete); }
.head { color: var(--soft); font-weight: 400; }
.role, .scope, .status { font-size: .75rem; font-weight: 600; line-height: 1.5; padding: .05rem .5rem; border-radius: 99px; white-space: nowrap; color: var(--soft); border: 1px solid color-mix(in srgb, currentColor 35%, transparent); }
.viewer { color: var(--get); } .operator { color: var(--put); } .admin { color: var(--delete); }
.scope { border-style: dashed; font-weight: 500; }
.status { color: var(--post); font-family: var(--mono); }
.refused { color: var(--delete); }
.needed { font-size: .75rem; color: var(--delete); white-space: nowrap; }

.table { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: .9375rem; }
th { text-align: left; font-size: .8125rem; font-weight: 500; color: var(--soft); padding: .25rem .9rem .25rem 0; border-bottom: 1px solid var(--line); }
td { vertical-align: top; padding: .45rem .9rem .45rem 0; border-bottom: 1px solid var(--line); overflow-wrap: anywhere; }
td:last-child, th:last-child { padding-right: 0; }
tbody tr:last-child td { border-bottom: 0; }
td:first-child { min-width: 9rem; }
.answers { list-style: none; padding: 0; margin: 0; }
.answers li { margin: .3rem 0; }

@media (max-width: 52rem) {
  body { display: block; }
  nav { position: static; height: auto; border-right: 0; border-bottom: 1px solid var(--line); padding: 1rem; }
  nav ul { display: flex; flex-wrap: wrap; gap: .35rem; margin-top: .75rem; }
  nav li a { margin: 0; padding: .2rem .7rem; border: 1px solid var(--line); border-radius: 99px; gap: .4rem; font-size: .9375rem; }
  main { padding-top: 1.5rem; }
  h1 { font-size: 1.75rem; }
  .route > summary { grid-template-columns: auto minmax(0, 1fr); padding: .7rem .9rem; }
  .path { grid-column: 1 / -1; grid-row: 2; }
  .what { grid-column: 1 / -1; }
  .body { padding: .9rem; }
  .facts { grid-template-columns: minmax(0, 1fr); }
  thead { display: none; }
  tr { display: block; padding: .5rem 0; border-bottom: 1px solid var(--line); }
  td { display: block; padding: .1rem 0; border: 0; min-width: 0; }
}
@media print {
  nav, .skip { display: none; }
  body { display: block; }
  .route { break-inside: avoid; }
}
`;

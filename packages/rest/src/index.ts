// @sluice/rest: the HTTP interface: uploads, files, nodes, drives, keys, tokens and links.
export {};

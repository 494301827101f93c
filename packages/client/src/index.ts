// @sluice/client: uploads files from browsers and Node: in parallel, resumable, verified.
export {};

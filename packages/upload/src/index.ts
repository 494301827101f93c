// @sluice/upload: takes files in: chunks in any order, verified, completed exactly once.
export {};

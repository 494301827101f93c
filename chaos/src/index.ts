// Breaks everything on purpose and proves from the books that nothing was lost.
export {};

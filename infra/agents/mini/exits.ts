/** How mini ends, as exit codes; any other code is a crash. */
export const exits = {
  submitted: 0,
  /** The model went on without calling a tool. */
  exited: 10,
  turnLimit: 11,
  deadline: 12,
  contextOverflow: 13,
} as const;

/** Exit codes of mini; any other code is a crash. The host enforces the deadline, as for every agent. */
export const exits = {
  submitted: 0,
  /** The model repeatedly called no tool. */
  exited: 10,
  turnLimit: 11,
  contextOverflow: 12,
  tokenBudget: 13,
} as const;

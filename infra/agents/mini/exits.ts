/** Exit codes of temper's own agents; any other code is a crash. The host enforces the deadline, as for every agent. */
export const exits = {
  submitted: 0,
  /** The model repeatedly did nothing. */
  exited: 10,
  turnLimit: 11,
  contextOverflow: 12,
  tokenBudget: 13,
} as const;

/** Error codes of the gateway that end an agent with an exit code of their own. */
export const exitsByCode: Readonly<Record<string, number>> = {
  context_length_exceeded: exits.contextOverflow,
  turn_limit: exits.turnLimit,
  token_budget: exits.tokenBudget,
};

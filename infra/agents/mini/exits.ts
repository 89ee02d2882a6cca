import { ModelError } from './model.ts';

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
const exitsByCode: Readonly<Record<string, number>> = {
  context_length_exceeded: exits.contextOverflow,
  turn_limit: exits.turnLimit,
  token_budget: exits.tokenBudget,
};

/** Returns the exit code of a conversation. An error of the gateway that has an exit code of its own is logged and not thrown. */
export async function exitCodeOf(conversation: Promise<number>, log: (line: string) => void): Promise<number> {
  try {
    return await conversation;
  } catch (error) {
    if (!(error instanceof ModelError)) throw error;
    const code = exitsByCode[error.code];
    if (code === undefined) throw error;
    log(`ends: ${error.message}`);
    return code;
  }
}

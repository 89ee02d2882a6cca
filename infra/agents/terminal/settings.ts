/** Names of the environment variables set by the host. */
export const variables = {
  baseUrl: 'OPENAI_BASE_URL',
  secret: 'OPENAI_API_KEY',
  workdir: 'TEMPER_WORKDIR',
  maxTurns: 'TEMPER_MAX_TURNS',
  /** The way in which the model is asked for commands: `text` or `tools`. */
  commands: 'TEMPER_COMMANDS',
  /** Optional: the address of the host tools. */
  hostTools: 'TEMPER_HOST_TOOLS',
  /** Optional: the longest wait after keystrokes. */
  longestWaitSec: 'TEMPER_TOOL_TIMEOUT_SEC',
} as const;

export const instructionFile = '.temper-instruction.md';

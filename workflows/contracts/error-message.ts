/** The text of anything that was thrown: an error's message, or the thrown value as a string. */
export function errorMessage(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/**
 * Returns the message of the innermost cause, short enough for history, memo and UI. The outer errors only say "activity
 * failed".
 */
export function rootMessage(error: unknown): string {
  let root = error;
  while (root instanceof Error && root.cause instanceof Error) root = root.cause;
  return errorMessage(root).slice(0, 500);
}

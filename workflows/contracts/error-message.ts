/** The text of anything that was thrown: an error's message, or the thrown value as a string. */
export function errorMessage(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

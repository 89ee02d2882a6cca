/** What the innermost cause says, short enough for history, memo and UI: the outer ones only say "activity failed". */
export function rootMessage(error: unknown): string {
  let root = error;
  while (root instanceof Error && root.cause instanceof Error) root = root.cause;
  return (root instanceof Error ? root.message : String(root)).slice(0, 500);
}

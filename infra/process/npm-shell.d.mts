/** Calls `ended` once the shell in which npm runs this program has ended, unless that shell put it in the background. */
export function onNpmShellEnd(ended: () => void): void;

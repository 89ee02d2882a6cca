/** Prints a line of progress or an error to stderr, apart from the command's own output. */
export function say(line: string): void;

/** One line of progress or of an error, apart from the command's own output. */
export function say(line: string): void;

/** One line of progress or of an error, apart from the command's own output. */
export function say(line) {
  process.stderr.write(`temper: ${line}\n`);
}

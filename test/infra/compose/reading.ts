import assert from 'node:assert/strict';
import { type ComposeFormat, mainImage, readCompose } from '../../../infra/compose/compose.ts';
import { TemperFailure } from '../../../workflows/contracts/failures.ts';

const format: ComposeFormat = {
  main: 'main',
  addsMain: true,
  variables: { MAIN_IMAGE_NAME: mainImage, DIR: '/tests' },
};
const files = new Map(
  Object.entries({
    'db.env': `# The data base.
export USER=shop   # its owner
NAME: "shop\\tone"
URL="db://\${USER}@db/\${NAME}" # whole
PRICE='$5 \\n it\\'s'
EMPTY=
LINES="one
two"
TOKEN=\${TOKEN:-none}
HASH=a#b
COST="\\$5"
`,
    'raw.env': `NAME="quoted" # all of it\n  #no\nUSER=$USER\n`,
    '.env': 'TAG=16-alpine\nDIR=/other\n',
  }).map(([path, text]) => [path, { mode: 0o644, bytes: Buffer.from(text) }]),
);
/** Reads a compose file whose folder has files of variables. */
export const read = (source: string) => readCompose({ text: source, file: 'compose.yaml', files }, format);
/** Whether an error says that no sandbox has what a field asks for. */
export const failure = (message: RegExp) => (error: unknown) =>
  error instanceof TemperFailure && error.type === 'UnsupportedTask' && message.test(error.message)
    ? true
    : assert.fail(`expected ${message}, got ${error}`);

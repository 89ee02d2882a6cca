import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { readBuildContext } from '../../../infra/harbor/build-context.ts';
import { readDockerfile } from '../../../infra/harbor/dockerfile.ts';
import { treeOf } from '../../helpers/sandbox/workspaces.ts';
import { userSeconds } from '../../helpers/user-seconds.ts';
import { failure, read } from '../compose/reading.ts';

const build = (dockerfile: string) => readBuildContext(treeOf({ Dockerfile: dockerfile }), 600);

/** Files of a task that a regular expression which can match in several ways would be tried on for minutes, or for ever. */
const slow: Readonly<Record<string, () => unknown>> = {
  'an option with many quotes': () => build(`FROM a\nRUN --mount=${'"b"'.repeat(23)}\n`),
  'a RUN with many variables': () => readDockerfile(`FROM a\nRUN ${"A='b' ".repeat(32)}\n`),
  'many blank lines': () => build(`FROM a\n${'\n'.repeat(200_000)}RUN b\n`),
  'many continued lines': () => build(`FROM a\nRUN a \\\n${'  && b c \\\n'.repeat(100_000)}  d\n`),
  'many here-documents': () => build(`FROM a\n${'RUN <<E\nb\nE\n'.repeat(30_000)}`),
  'many backslashes': () => build(`FROM a\nRUN b ${'\\'.repeat(200_000)}c\n`),
  'a volume with many variables': () =>
    assert.throws(
      () => read(`services: { main: { volumes: ['b:${`$\{A}`.repeat(28)}:'] } }`),
      failure(/services\.main\.volumes/),
    ),
};

describe('a hostile file of a task', () => {
  for (const [name, readIt] of Object.entries(slow)) {
    it(`is read at once: ${name}`, () => {
      const seconds = userSeconds(readIt);
      assert.ok(seconds < 20, `expected time that grows with the length of the file, got ${seconds} s`);
    });
  }

  it('is rejected if its arguments grow with each other', () => {
    const doubled = Array.from({ length: 40 }, (_, index) => `ARG A${index + 1}=$A${index}$A${index}\n`);
    assert.throws(() => build(`ARG A0=0123456789\n${doubled.join('')}FROM a\n`), {
      type: 'UnsupportedTask',
      message: /values of ARG and ENV of at most 1048576 characters together/,
    });
  });
});

import assert from 'node:assert/strict';
import { it } from 'node:test';
import { configureDockerfile } from '../../../infra/harbor/build-settings.ts';

const configured = (source: string, args: Readonly<Record<string, string>>, target: string | null = null): string =>
  configureDockerfile(source, { args, target }, (expected, got) => new Error(`expected ${expected}, got ${got}`));

it('leaves a Dockerfile without settings as it is', () => {
  const source = '# escape=\\\r\nFROM a\r\nARG B';
  assert.equal(configured(source, {}), source);
});

it('writes the values of arguments into the lines that declare them, with quotes', () => {
  const source = `ARG A=1 B="two words" C
FROM a:$A
arg A
ARG \\
  # of the main stage
  D='x A=5' AB=A
ENV A=1
RUN <<EOF
ARG A
EOF
`;
  assert.equal(
    configured(source, { A: '3', C: '"$5" \\', D: "it's", E: 'unknown' }),
    `ARG A="3" B="two words" C="\\"\\$5\\" \\\\"
FROM a:$A
ARG A="3"
ARG D="it's" AB=A
ENV A=1
RUN <<EOF
ARG A
EOF
`,
  );
});

it('leaves out the stages after the target, by its name or its number', () => {
  const stages = [
    'FROM a AS Build\nRUN <<EOF\nFROM x AS last\nEOF\n',
    'FROM --platform=$B b as run\n',
    'FROM run\nRUN c\n',
  ];
  const source = stages.join('');
  assert.equal(configured(source, {}, 'build'), stages[0]);
  assert.equal(configured(source, {}, 'RUN'), `${stages[0]}${stages[1]}`);
  assert.equal(configured(source, {}, '1'), `${stages[0]}${stages[1]}`);
  assert.equal(configured(source, {}, '2'), source);
  for (const missing of ['last', '3', '-1', 'a'])
    assert.throws(
      () => configured(source, {}, missing),
      new RegExp(`a stage of the Dockerfile \\(build, run, 2\\), got ${missing}`),
    );
});

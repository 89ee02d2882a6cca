import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { mainImage, readCompose } from '../../../infra/compose/compose.ts';
import { substitute } from '../../../infra/compose/variables.ts';
import { writeCompose } from '../../../infra/compose/write.ts';
import { text } from '../../../infra/harbor/harbor-files.ts';
import { readHarborTask } from '../../../infra/harbor/harbor-task.ts';
import { fillVariables, neededVariables } from '../../../infra/harbor/host-variables.ts';
import { failure } from '../../helpers/tasks/data-set-fixture.ts';

const refuse = (expected: string, got: string): Error => new Error(`expected ${expected}, got ${got}`);
const filled = (source: string): string =>
  substitute(source, { variables: { DIR: '/tests', EMPTY: '', OTHER: 'o' }, refuse });

describe('a text of a compose file', () => {
  for (const [source, value] of [
    [`$DIR/\${DIR}`, '/tests//tests'],
    [`$$DIR $\${DIR} $$$DIR $$`, `$DIR \${DIR} $/tests $`],
    [`\${DIR:-a} \${NONE:-a} \${EMPTY:-a}`, '/tests a a'],
    [`\${DIR-a} \${NONE-a} \${EMPTY-a}`, '/tests a '],
    [`\${DIR:+a} \${NONE:+a} \${EMPTY:+a} \${EMPTY+a}`, 'a   a'],
    [`\${DIR:?no} \${EMPTY?no}`, '/tests '],
    [`\${NONE:-\${ALSO:-\${OTHER}}} \${NONE:-}`, 'o '],
    [`\${NONE:-{"a": {}}} \${NONE:-$$5}`, '{"a": {}} $5'],
    [`\${DIR:-\${MISSING}} \${NONE:-a:b?c}`, '/tests a:b?c'],
    ['$(date) $5 "$" a$', '$(date) $5 "$" a$'],
  ] as const) {
    it(`reads ${source} as ${JSON.stringify(value)}`, () => assert.equal(filled(source), value));
  }

  for (const [source, message] of [
    ['$NONE', /expected only variables of the harness, .*, got \$NONE$/],
    [`\${NONE:?name a host}`, /expected a value of a variable that the file requires, got none of NONE: name a host/],
    [`\${EMPTY:?no}`, /got none of EMPTY: no/],
    [`a \${DIR`, /expected a variable such as \$\{NAME\} .*, got \$\{DIR$/],
    [`\${DIR!x}`, /expected a variable such as .*, got \$\{DIR!x\}/],
    [`${`\${A:-`.repeat(50)}${'}'.repeat(50)}`, /nested at most 20 times/],
  ] as const) {
    it(`is refused for ${source.slice(0, 30)}`, () => assert.throws(() => filled(source), message));
  }
});

const compose = `services:
  main: {image: "$MAIN_IMAGE_NAME", environment: {OWN: "$\${HOST}", NAME: "$\${HOST:-x}"}}
  api:
    image: \${IMAGE:-api:1}
    environment:
      - LITERAL=$\${HOST}
      - TWICE=$\${A:-$$5}
      - HOST
      - OLD=\${HOST-d}
      - NESTED=\${HOST:-\${ALSO:-$$5}}
      - NEEDED=\${HOST:?must be set}
      - OTHER=\${NONE:+other}
`;

describe('the environment in a compose file', () => {
  const task = () =>
    readHarborTask(
      new Map([
        ['task.toml', text('[environment]\ndocker_image = "i"\n')],
        ['instruction.md', text('Do it.\n')],
        ['tests/test.sh', text('true\n')],
        ['environment/docker-compose.yaml', text(compose)],
      ]),
    );

  it('keeps a literal that looks like a variable of the host', () => {
    const read = task();
    assert.deepEqual(neededVariables(read), ['HOST']);
    const { env, beside } = fillVariables(read, { HOST: 'secret' });
    assert.deepEqual(env, { OWN: `\${HOST}`, NAME: `\${HOST:-x}` });
    assert.deepEqual(beside?.services[0]?.env, {
      LITERAL: `\${HOST}`,
      TWICE: `\${A:-$5}`,
      HOST: 'secret',
      OLD: 'secret',
      NESTED: 'secret',
      NEEDED: 'secret',
      OTHER: '',
    });
    assert.throws(() => fillVariables(read, {}), failure('UnsupportedTask', /expected the variable HOST/));
  });

  it('is the same after it is written', () => {
    const format = { main: 'main', addsMain: true, variables: { MAIN_IMAGE_NAME: mainImage } };
    const { main, beside } = readCompose({ text: compose, file: 'compose.yaml', files: new Map() }, format);
    assert.equal(main.image, null);
    assert.ok(beside !== null);
    assert.deepEqual(beside.services[0]?.image, { name: 'api:1' });
    const again = { text: writeCompose(beside), file: 'compose.yaml', files: new Map() };
    assert.deepEqual(readCompose(again, format).beside, beside);
  });
});

import assert from 'node:assert/strict';
import { it } from 'node:test';
import { ofStep, readHarborTask } from '../../../infra/harbor/harbor-task.ts';
import { fillVariables, neededVariables } from '../../../infra/harbor/host-variables.ts';
import { needs } from '../../../infra/tasks/task-needs.ts';
import { treeOf } from '../../helpers/sandbox/workspaces.ts';

const environment = '[environment]\ndocker_image = "x"\n';
const files = {
  'steps/one/instruction.md': 'First.',
  'steps/one/tests/test.sh': 'one',
  'steps/one/solution/solve.sh': 'solve one',
  'steps/two/instruction.md': 'Then.',
  'steps/two/workdir/setup.sh': 'true',
  'steps/two/workdir/data/in.txt': '1',
  'tests/test.sh': 'shared',
  'tests/helper.sh': 'help',
  'solution/solve.sh': 'solve all',
};

const read = (steps: string, { head = '', tail = '', others = {} as Readonly<Record<string, string | null>> } = {}) => {
  const all = Object.entries({ 'task.toml': `${head}${environment}${tail}\n${steps}`, ...files, ...others });
  return readHarborTask(
    treeOf(Object.fromEntries(all.flatMap(([path, text]) => (text === null ? [] : [[path, text]])))),
  );
};
const steps = `[[steps]]
name = "one"
min_reward = 0.5
agent = { timeout_sec = 60 }
verifier = { timeout_sec = 5, env = { A = "1", B = "\${B}" } }
[[steps]]
name = "two"
min_reward = { reward = 1 }
healthcheck = { command = "true" }
`;
const longHosts = Array.from({ length: 60 }, (_, index) => `"${'a'.repeat(25)}${index}.test"`).join();
const longList = `network_mode = "allowlist", allowed_hosts = [${longHosts}]`;
const thirty = Array.from({ length: 30 }, (_, index) => `step-${index}`);
const manyPorts = `network_mode = "public", allowed_ports = [${Array.from({ length: 20 }, (_, port) => 10_000 + port)}]`;
const textOf = (tree: ReadonlyMap<string, { readonly bytes: Uint8Array }>, path: string): string =>
  new TextDecoder().decode(tree.get(path)?.bytes);

it('reads the steps of a task, each with its own files before those of all', () => {
  const task = read(steps, {
    head: 'multi_step_reward_strategy = "final"\n',
    tail: '[verifier]\nenv = { A = "0", C = "3" }',
  });
  assert.deepEqual(task.description.steps, [
    { name: 'one', agentTimeoutSec: 60, evaluationTimeoutSec: 5, minReward: 0.5 },
    { name: 'two', minReward: 1 },
  ]);
  assert.equal(task.description.rewardOfSteps, 'final');
  const [one, two] = [ofStep(task, 1), ofStep(task, 2)];
  assert.deepEqual([one.instruction, two.instruction, task.instruction], ['First.', 'Then.', 'First.']);
  assert.deepEqual([textOf(one.tests, 'test.sh'), textOf(two.tests, 'test.sh')], ['one', 'shared']);
  assert.equal(textOf(one.tests, 'helper.sh'), 'help');
  assert.deepEqual([textOf(one.solution, 'solve.sh'), textOf(two.solution, 'solve.sh')], ['solve one', 'solve all']);
  assert.deepEqual([...(two.begin?.workdir.keys() ?? [])], ['setup.sh', 'data/in.txt']);
  assert.deepEqual([one.begin?.healthCheck, two.begin?.healthCheck?.command], [null, 'true']);
  assert.deepEqual(
    [one.testEnv, two.testEnv],
    [
      { A: '1', B: `\${B}`, C: '3' },
      { A: '0', C: '3' },
    ],
  );
  assert.throws(() => ofStep(task, 3), { type: 'MalformedTask', message: /expected a step 3, got 2 steps/ });
});

it('is counted among the tasks that reward giving up if a step may end it before the last one', () => {
  const need = needs['no reward for giving up'];
  const task = read(steps);
  assert.ok(need.isNeeded(task) && !need.isNeeded(read(steps.replace('min_reward = 0.5\n', ''))));
  assert.match(need.place(task) ?? '', /^ending at step one with a reward just below 0\.5 gives up to 0\.50 /);
});

it('reads the scores that a step must reach, of which the one called reward is the reward itself', () => {
  const task = read(steps.replace('{ reward = 1 }', '{ reward = 1, style = 0.5, cases = 12 }'));
  const [, second] = task.description.steps ?? [];
  assert.deepEqual(second, { name: 'two', minReward: 1, minScores: { style: 0.5, cases: 12 } });
  assert.deepEqual([ofStep(task, 1).keptScores, ofStep(task, 2).keptScores], [[], ['style', 'cases']]);
  assert.deepEqual(task.keptScores, []);
});

it('needs no files of the whole task, and leaves the description of other tasks as it was', () => {
  const without = { 'tests/test.sh': null, 'solution/solve.sh': null, 'steps/two/tests/test.sh': 'two' };
  const task = read(steps, { others: without });
  assert.equal(task.description.rewardOfSteps, undefined);
  assert.deepEqual(
    [ofStep(task, 1).solution.size, ofStep(task, 2).solution.size],
    [0, 0],
    'half a solution solves nothing',
  );
  const single = read('', { others: { 'instruction.md': 'All.' } });
  assert.ok(!('steps' in single.description) && single.begin === null && single.steps.length === 0);
});

it('knows the variables of the host that any of its steps needs', () => {
  const task = read(steps);
  assert.deepEqual(neededVariables(task), ['B']);
  assert.throws(() => fillVariables(task, {}), { type: 'UnsupportedTask', message: /the variable B of this host/ });
  assert.equal(ofStep(fillVariables(task, { B: 'b' }), 1).testEnv.B, 'b');
});

it('gives each step its own network, where that differs from the network of the whole task', () => {
  const tables = (agent: string, verifier = '') => `[[steps]]\nname = "one"\n[[steps]]\nname = "two"
agent = { ${agent} }\nverifier = { ${verifier} }\n`;
  const secondOf = (text: string, tail = '', head = '') => read(text, { head, tail }).description.steps?.[1];
  const listed = 'network_mode = "allowlist", allowed_hosts = ["a.test"]';
  const policy = { mode: 'allowlist', hosts: ['a.test'], ports: [80, 443] };
  const none = { mode: 'none', hosts: [], ports: [80, 443] };
  assert.deepEqual(secondOf(tables(listed)), { name: 'two', network: policy });
  assert.deepEqual(secondOf(tables('network_mode = "no-network"')), { name: 'two' });
  const whole = `[agent]\n${listed.replace(', ', '\n')}\n`;
  assert.deepEqual(secondOf(tables(listed), '', whole), { name: 'two' });
  assert.deepEqual(secondOf(tables('network_mode = "no-network"'), '', whole), { name: 'two', network: none });
  // Harbor's default is granted to tests as far as the operator allows it; a step that names it needs it.
  const open = { mode: 'public', hosts: [], ports: [80, 443] };
  assert.deepEqual(secondOf(tables('', 'network_mode = "public"')), { name: 'two', testNetwork: open });
  assert.deepEqual(secondOf(tables('', 'network_mode = "no-network"')), { name: 'two', testNetwork: none });
  assert.deepEqual(secondOf(tables('', 'network_mode = "no-network"'), 'network_mode = "no-network"'), { name: 'two' });
});

it('gives a step the default network of its tests: needed if they download, else optional', () => {
  const [two, open] = [
    '[[steps]]\nname = "one"\n[[steps]]\nname = "two"\n',
    { mode: 'public', hosts: [], ports: [80, 443] },
  ];
  const networks = (others: Readonly<Record<string, string>>, tail = '') => {
    const { testNetwork, steps = [] } = read(two, { others, tail }).description;
    return [testNetwork, ...steps.map((step) => step.testNetwork)];
  };
  const [optional, first] = [
    { ...open, optional: true },
    { ...open, neededFor: 'tests/test.sh:1: npm install x' },
  ];
  assert.deepEqual(networks({}), [optional, undefined, undefined]);
  assert.deepEqual(networks({ 'steps/one/tests/test.sh': 'npm install x' }), [first, undefined, optional]);
  assert.deepEqual(networks({ 'tests/test.sh': 'npm install x' }), [optional, undefined, first]);
  const setUp = { ...open, neededFor: 'set-up, which never has a network: setup.sh:1: npm install x' };
  assert.deepEqual(networks({ 'steps/two/workdir/setup.sh': 'npm install x' }), [optional, undefined, setUp]);
  assert.deepEqual(networks({ 'tests/test.sh': 'npm install x' }, 'network_mode = "no-network"'), [
    undefined,
    undefined,
    undefined,
  ]);
});

it('makes the agents of all steps root, or none', () => {
  const asked = (one: string, two: string, head = '') =>
    read(`[[steps]]\nname = "one"\nagent = { ${one} }\n[[steps]]\nname = "two"\nagent = { ${two} }\n`, { head });
  assert.equal(asked('user = "root"', 'user = 0').description.user, 'root');
  assert.equal(asked('', 'user = "root"', '[agent]\nuser = "0"\n').description.user, 'root');
  // No other account of an image has more rights than the agent's own.
  assert.equal(asked('user = "app"', 'user = 1000').description.user, undefined);
  assert.throws(() => asked('user = "app"', '', '[agent]\nuser = "root"\n'), { type: 'UnsupportedTask' });
});

it('refuses steps that are wrong, or that ask for more than temper does between steps', () => {
  const two = (fields: string): string => `[[steps]]\nname = "one"\n[[steps]]\nname = "two"\n${fields}\n`;
  const refused: readonly (readonly [string, string, RegExp, Parameters<typeof read>[1]?])[] = [
    ['[[steps]]\nname = "../one"', 'MalformedTask', /steps\.0\.name|steps\[0\]\.name/],
    [
      '[[steps]]\nname = "three"',
      'MalformedTask',
      /steps\/three\/instruction\.md: expected the text of the step, got none/,
    ],
    [
      '[[steps]]\nname = "one"\n[[steps]]\nname = "ONE"',
      'MalformedTask',
      /expected steps of different names, got ONE twice/,
    ],
    [
      two(''),
      'MalformedTask',
      /steps\/two\/tests\/test\.sh: expected a file there or in tests\/, got none/,
      { others: { 'tests/test.sh': null } },
    ],
    [two('min_reward = {}'), 'UnsupportedTask', /min_reward: expected a number, or numbers by .*, got none in two/],
    [
      two(`min_reward = { ${'s'.repeat(4_000)} = 1 }`),
      'UnsupportedTask',
      /steps: min_reward: expected at most 4000 characters of scores in all steps together .*, got 4008$/,
    ],
    [two('min_reward = { style = "high" }'), 'MalformedTask', /min_reward: expected a number, or numbers by name/],
    [
      two('agent = { user = "root" }'),
      'UnsupportedTask',
      /steps: agent\.user: expected root in all steps or in none, .*, got another account in one/,
    ],
    [
      two('agent = { allowed_hosts = ["10.0.0.1"] }'),
      'MalformedTask',
      /steps: agent: network: hosts\.0: expected the name of a host/,
    ],
    [
      two(`agent = { ${longList} }\nverifier = { ${longList} }`),
      'UnsupportedTask',
      /steps: network: expected at most 4000 characters of hosts and ports in all steps together .*, got 42\d\d$/,
    ],
    [
      thirty.map((name) => `[[steps]]\nname = "${name}"\nagent = { ${manyPorts} }\n`).join(''),
      'UnsupportedTask',
      /steps: network: expected at most 4000 characters of hosts and ports/,
      { others: Object.fromEntries(thirty.map((name) => [`steps/${name}/instruction.md`, 'Do it.'])) },
    ],
    [two('[steps.verifier.environment]'), 'UnsupportedTask', /verifier\.environment/],
    [
      two('verifier = { environment_mode = "separate" }'),
      'UnsupportedTask',
      /steps: verifier\.environment_mode: expected tests in the task's own image, got steps\/two\/tests\/Dockerfile/,
      { others: { 'steps/two/tests/Dockerfile': 'FROM debian\n' } },
    ],
    [
      two(''),
      'UnsupportedTask',
      /grading\.sandbox: expected "fresh" or "snapshot"/,
      { tail: '[grading]\nsandbox = "same"' },
    ],
    [two(''), 'UnsupportedTask', /no host tools in a task of several steps/, { tail: '[tools]\nhost = ["submit"]' }],
    [
      two(''),
      'UnsupportedTask',
      /steps: expected tests that write a reward in each/,
      { others: { 'grading.json': '{"failToPass": ["a"], "logParser": "tap"}' } },
    ],
    [
      two('artifacts = ["/srv/a"]\nverifier = { environment_mode = "separate" }'),
      'UnsupportedTask',
      /artifacts: expected paths in the workdir/,
    ],
  ];
  for (const [text, type, message, options] of refused)
    assert.throws(() => read(text, options), { type, message }, text);
});

it('collects by the commands of the whole task, and then by those of the step', () => {
  const task = read(`${steps}verifier = { collect = [{ command = "two", timeout_sec = 5 }] }\n`, {
    tail: '[[verifier.collect]]\ncommand = "all"',
  });
  assert.deepEqual(ofStep(task, 1).collect, [{ command: 'all', timeoutSec: 60 }]);
  assert.deepEqual(ofStep(task, 2).collect[1], { command: 'two', timeoutSec: 5 });
  const long = `${steps}verifier = { collect = [{ command = "two", timeout_sec = 541 }] }\n`;
  assert.throws(() => read(long, { tail: '[[verifier.collect]]\ncommand = "all"' }), {
    type: 'MalformedTask',
    message: /verifier\.collect of 600 seconds in all at most, got 601/,
  });
});

it('refuses commands that collect with other rights, elsewhere, or for longer than an agent is awaited', () => {
  const collecting = (fields: string) => () =>
    read('', { tail: `[[verifier.collect]]\ncommand = "true"\n${fields}`, others: { 'instruction.md': 'Do.' } });
  assert.throws(collecting('user = "root"'), {
    type: 'UnsupportedTask',
    message: /set agent\.user to root, too, got the user root/,
  });
  assert.throws(collecting('service = "db"'), {
    type: 'UnsupportedTask',
    message: /commands of the service main, which reaches the others by .*, got db/,
  });
  assert.throws(collecting('timeout_sec = 601'), { type: 'MalformedTask', message: /collect/ });
  assert.deepEqual(collecting('user = "app"')().collect, [{ command: 'true', timeoutSec: 60 }]);
});

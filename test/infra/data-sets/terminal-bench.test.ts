import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { open, readFile } from 'node:fs/promises';
import { it } from 'node:test';
import { dataSetPlace, failure, packed, textIn } from '../../helpers/tasks/data-set.ts';

const terminalBench: Readonly<Record<string, string>> = {
  'task.yaml':
    'instruction: |-\n  Write "hello".\nauthor_email: a@b.c\ndifficulty: easy\ntags:\n  - files\nparser_name: pytest\nmax_agent_timeout_sec: 180.0\nmax_test_timeout_sec: 40.0\n',
  'run-tests.sh': '#!/bin/bash\n[ "$TEST_DIR" = /tests ]\n',
  'solution.sh': '#!/bin/bash\necho hello\n',
  'tests/test_outputs.py': 'def test(): pass\n',
  Dockerfile: 'FROM debian:bookworm\nWORKDIR /srv\n',
  'docker-compose.yaml': 'services:\n  client:\n    build:\n      dockerfile: Dockerfile\n    image: $NAME\n',
};

const client = (line: string): string => `services:\n  client:\n    ${line}\n`;

it('a task of terminal-bench becomes a task with its parts apart', async () => {
  await using place = await dataSetPlace();
  for (const [path, text] of Object.entries(terminalBench)) await place.write(`tb/hello/${path}`, text);
  await place.write('tb/hello/tests/data.tar.gz', 'a file of the task, no archive of tasks');
  const { task, tests, solution, instruction } = await packed(place.tasks, `terminal-bench:${place.root}/tb#hello`);
  assert.deepEqual(
    [task.image, task.workdir, task.agentTimeoutSec, task.evaluationTimeoutSec],
    ['debian:bookworm', '/srv', 180, 40],
  );
  assert.equal(instruction, 'Write "hello".\n');
  assert.ok(solution.has('solve.sh') && tests.has('test_outputs.py'));
});

const heading = '=========================== short test summary info ============================';
/** What `run-tests.sh` prints and how it ends, and what that is worth. */
const verdicts: readonly (readonly [string, string, string])[] = [
  ['tests that pass', `echo '${heading}'; echo 'PASSED tests/test_outputs.py::test_one'`, '1\n'],
  [
    'tests that pass and expected failures, in colour',
    `printf '\\e[36m%s\\e[0m\\n' '${heading}' 'PASSED a.py::one' 'XFAIL a.py::two' 'SKIPPED [1] a.py:7: no'`,
    '1\n',
  ],
  [
    'a failing test before a command that ends well',
    `echo '${heading}'; echo 'PASSED a.py::one'; echo 'FAILED a.py::two - assert 1 == 2'; echo 'Pytest end.'`,
    '0\n',
  ],
  [
    'a failing test of the first of two runs',
    `echo '${heading}'; echo 'FAILED a.py::two'; echo '${heading}'; echo 'PASSED b.py::one'`,
    '0\n',
  ],
  ['an error outside of a test', `echo '${heading}'; echo 'ERROR a.py - ImportError'; echo 'PASSED b.py::one'`, '0\n'],
  ['skipped tests alone', `echo '${heading}'; echo 'SKIPPED [1] a.py:7: no'`, '0\n'],
  ['no summary', "echo 'PASSED a.py::one'", '0\n'],
  ['passing tests and a failing end', `echo '${heading}'; echo 'PASSED a.py::one'; exit 3`, '0\n'],
  [
    'a process that stays behind with the output open',
    `sleep 30 & echo $! >"$LEFT"; echo '${heading}'; echo 'PASSED a.py::one'`,
    '1\n',
  ],
];
for (const [what, commands, expected] of verdicts) {
  it(`${what} in the tests of terminal-bench: a reward of ${expected.trim()}`, async () => {
    await using place = await dataSetPlace();
    for (const [path, text] of Object.entries(terminalBench)) await place.write(`tb/hello/${path}`, text);
    await place.write('tb/hello/run-tests.sh', `[ "$TEST_DIR" = /tests ] || exit 9\n${commands}\n`);
    const { tests } = await packed(place.tasks, `terminal-bench:${place.root}/tb#hello`);
    const runTests = await place.write('run-tests.sh', textIn(tests, 'run-tests.sh'));
    const left = await place.write('left', '');
    const script = textIn(tests, 'test.sh')
      .replaceAll('/logs/verifier', `${place.root}/logs`)
      .replaceAll('/tests/run-tests.sh', runTests);
    const said = await open(`${place.root}/said`, 'w');
    execFileSync('bash', ['-c', script], {
      stdio: ['ignore', said.fd, 'inherit'],
      env: { ...process.env, LEFT: left },
    });
    await said.close();
    assert.equal(await readFile(`${place.root}/logs/reward.txt`, 'utf8'), expected);
    assert.match(await readFile(`${place.root}/said`, 'utf8'), /a\.py|test_outputs/);
    const pid = Number(await readFile(left, 'utf8'));
    if (pid > 0) process.kill(pid);
  });
}

/** The compose file that most published tasks have, and Dockerfiles that need a build. */
const published: Readonly<Record<string, string>> = {
  'docker-compose.yaml': `version: '3'
services:
  client:
    build:
      context: .
      dockerfile: \${T_BENCH_TASK_DOCKER_FILE_PATH:-images/Dockerfile}
    image: \${T_BENCH_TASK_DOCKER_CLIENT_IMAGE_NAME}
    container_name: \${T_BENCH_TASK_DOCKER_CLIENT_CONTAINER_NAME}
    command: ["sh", "-c", "sleep infinity"]
    working_dir: /work
    environment:
      - TEST_DIR=\${T_BENCH_TEST_DIR}
      - PRICE=$$5=\${PRICE:-five}
    volumes:
      - \${T_BENCH_TASK_LOGS_PATH}:\${T_BENCH_CONTAINER_LOGS_PATH}
      - \${T_BENCH_TASK_AGENT_LOGS_PATH}:\${T_BENCH_CONTAINER_AGENT_LOGS_PATH}
`,
  'images/Dockerfile': 'FROM debian:bookworm\nWORKDIR /app\nCOPY data ./data\nRUN sort data/in >sorted\n',
  'data/in': 'b\na\n',
};

it('a task of terminal-bench whose image has to be built is built from its directory, without its tests and its solution', async () => {
  await using place = await dataSetPlace();
  for (const [path, text] of Object.entries({ ...terminalBench, ...published }))
    await place.write(`tb/built/${path}`, text);
  const { task, build, env, workspace } = await packed(place.tasks, `terminal-bench:${place.root}/tb#built`);
  assert.match(task.image, /^temper-built:[0-9a-f]{40}$/);
  assert.deepEqual([task.imageFrom, task.workdir, workspace.size], ['dockerfile', '/work', 0]);
  assert.deepEqual([...(build?.files.keys() ?? [])].sort(), ['Dockerfile', 'data/in', 'images/Dockerfile']);
  assert.equal(textIn(build?.files ?? new Map(), 'Dockerfile'), published['images/Dockerfile']);
  assert.deepEqual(env, { TEST_DIR: '/tests', PRICE: '$5=five' });
  await place.write('tb/built/tests/test_outputs.py', 'def test(): assert False\n');
  const otherTests = await place.tasks.resolve(`terminal-bench:${place.root}/tb#built`);
  assert.equal(otherTests.image, task.image);
  assert.notEqual(otherTests.bundle.digest, task.bundle.digest);
  const named = await place.tasks.resolve(`terminal-bench:${place.root}/tb?image=built:1#built`);
  assert.equal(named.image, 'built:1');
});

it('an image that a compose file names is only what the result is called, where it is built', async () => {
  await using place = await dataSetPlace();
  const image = async (name: string, compose: string): Promise<string> => {
    const files = { ...terminalBench, Dockerfile: 'FROM debian\nRUN true\n', 'docker-compose.yaml': compose };
    for (const [path, text] of Object.entries(files)) await place.write(`${name}/task/${path}`, text);
    return (await place.tasks.resolve(`terminal-bench:${place.root}/${name}#task`)).image;
  };
  assert.equal(await image('named', client('image: published:1')), 'published:1');
  assert.match(await image('built', client('{build: ., image: "published:1"}')), /^temper-built:/);
});

const refused: readonly (readonly [string, Readonly<Record<string, string>>, string, RegExp])[] = [
  [
    'broken YAML',
    { 'task.yaml': 'instruction: "a\n' },
    'MalformedTask',
    /bad\/task\.yaml: expected YAML, got: Missing closing/,
  ],
  [
    'no instruction',
    { 'task.yaml': 'difficulty: easy\n' },
    'MalformedTask',
    /task\.yaml: instruction: expected the text of the task, got nothing/,
  ],
  [
    'a timeout that is none',
    { 'task.yaml': 'instruction: a\nmax_agent_timeout_sec: soon\n' },
    'MalformedTask',
    /max_agent_timeout_sec: expected a number from 1 to 1000000 seconds, got "soon"/,
  ],
  [
    'several services',
    { 'docker-compose.yaml': 'services:\n  client: {}\n  db: {}\n' },
    'UnsupportedTask',
    /docker-compose\.yaml: services: expected one service, got client, db/,
  ],
  [
    'tests in the shell of the agent',
    { 'task.yaml': 'instruction: a\nrun_tests_in_same_shell: true\n' },
    'UnsupportedTask',
    /task\.yaml: expected run_tests_in_same_shell: false/,
  ],
  [
    "another parser than pytest's",
    { 'task.yaml': 'instruction: a\nparser_name: swebench\n' },
    'UnsupportedTask',
    /task\.yaml: expected parser_name: pytest, .*, got parser_name: swebench/,
  ],
  [
    'neither image nor Dockerfile',
    { Dockerfile: '', 'docker-compose.yaml': client('build: {dockerfile: None}') },
    'UnsupportedTask',
    /bad\/None: expected a Dockerfile, or an image as \?image=, got neither/,
  ],
  ...(
    [
      ['privileged: true', 'privileged: expected a container that asks for nothing beyond a sandbox, got true'],
      ['cap_add: [NET_ADMIN]', 'cap_add: expected .*, got \\["NET_ADMIN"\\]'],
      ['network_mode: host', 'network_mode: expected .*, got "host"'],
      ['depends_on: [db]', 'depends_on: expected'],
      ['entrypoint: /start.sh', 'entrypoint: expected .*, got "/start.sh"'],
      ['command: /start.sh', 'command: expected one that only waits, got /start.sh'],
      ['command: [sh, -c, "nginx && sleep infinity"]', 'command: expected one that only waits, got sh -c nginx'],
      ['volumes: ["./data:/data"]', 'volumes: expected none but for logs of the harness, got "./data:/data"'],
      ['volumes: ["/:/logs"]', 'volumes: expected none'],
      ['environment: [TOKEN]', "environment.TOKEN: expected a value, got the host's own"],
      ['environment: {A: $OTHER}', 'environment.A: expected variables of the harness, got \\$OTHER'],
      ['build: {context: ./client}', "build.context: expected the task's directory, got ./client"],
      ['build: {context: ., args: {A: b}}', 'build.args: expected context and dockerfile alone'],
      ['build: {context: ., target: final}', 'build.target: expected context and dockerfile alone'],
    ] as const
  ).map(
    ([line, message]) =>
      [
        line,
        { 'docker-compose.yaml': client(line) },
        'UnsupportedTask',
        new RegExp(`services\\.client\\.${message}`),
      ] as const,
  ),
  [
    'a network of its own',
    { 'docker-compose.yaml': `${client('build: .')}networks:\n  default: {internal: true}\n` },
    'UnsupportedTask',
    /docker-compose\.yaml: networks: expected nothing beside version, name, services/,
  ],
  [
    'a Dockerfile that the daemon itself would download for',
    { Dockerfile: 'FROM debian\nADD https://example.com/x /x\n' },
    'UnsupportedTask',
    /expected ADD of plain paths in the context.*or as \?image= of a data set/,
  ],
];
for (const [what, files, type, message] of refused) {
  it(`a task of terminal-bench with ${what} is refused as ${type}`, async () => {
    await using place = await dataSetPlace();
    for (const [path, text] of Object.entries({ ...terminalBench, ...files }))
      await place.write(`tb/bad/${path}`, text);
    await assert.rejects(place.tasks.resolve(`terminal-bench:${place.root}/tb#bad`), failure(type, message));
  });
}

import assert from 'node:assert/strict';
import { it } from 'node:test';
import { filesOf } from '../../../infra/exported/task-source.ts';
import { readHarborTask } from '../../../infra/harbor/harbor-task.ts';
import { createSetChecker, type SetCheck } from '../../../infra/tasks/check-set.ts';
import { needs as taskNeeds } from '../../../infra/tasks/task-needs.ts';
import { createDataSetFixture, type DataSetFixture, sweRow } from '../../helpers/tasks/data-set-fixture.ts';
import { terminalBench } from '../../helpers/tasks/terminal-bench-task.ts';

async function checked({ tasks }: DataSetFixture, set: string): Promise<SetCheck> {
  const given = { variables: { GIVEN: '1' }, hasOwnTools: false, withoutImages: null } as const;
  const checker = createSetChecker({ cpus: 8, memoryMb: 8192, network: 'none', ...given });
  for await (const found of tasks.scan(set)) await checker.add(found);
  return checker.result();
}

it('counts refused tasks by their reason, with the values found, and names an example', async () => {
  await using fixture = await createDataSetFixture();
  const rows = [1, 2, 3, 4].map((number) => ({ ...sweRow, instance_id: `a-${number}`, image: `image:${number % 2}` }));
  const file = await fixture.writeRows('rows.jsonl', [
    ...rows,
    { ...sweRow, instance_id: 'c', repo: 7 },
    { ...sweRow, instance_id: 'b', repo: 7 },
    { ...sweRow, instance_id: 'd', repo: 8 },
    { ...sweRow, instance_id: 'e', FAIL_TO_PASS: '[]' },
    { ...sweRow, instance_id: 'a-1' },
  ]);
  const { needs, graded, ...counts } = await checked(fixture, `swe-bench:${file}`);
  assert.deepEqual(
    graded.map(({ sandbox, count }) => [sandbox, count]),
    [['fresh', 4]],
  );
  assert.deepEqual(counts, {
    tasks: 9,
    usable: 4,
    images: 2,
    largest: { cpus: 2, memoryMb: 4096, diskMb: 10_240 },
    ungranted: 0,
    settings: [],
    refused: [
      {
        type: 'MalformedTask',
        reason: 'repo: expected a repository, such as "owner/name"',
        count: 3,
        example: 'b',
        got: [
          { value: '7', count: 2 },
          { value: '8', count: 1 },
        ],
      },
      {
        type: 'MalformedTask',
        reason: 'FAIL_TO_PASS: expected at least one test name',
        count: 1,
        example: 'e',
        got: [{ value: '"[]"', count: 1 }],
      },
      {
        type: 'MalformedTask',
        reason: 'expected each id once in a set',
        count: 1,
        example: 'a-1',
        got: [{ value: 'a-1', count: 1 }],
      },
    ],
  });
  assert.deepEqual(
    needs.map(({ need, count, example }) => [need, count, example]),
    [
      ['container', 4, 'a-1'],
      ['image pull', 4, 'a-1'],
    ],
  );
});

it('says what the files and the names of a compose file need', async () => {
  await using fixture = await createDataSetFixture();
  const variants: Readonly<Record<string, string>> = {
    added: `services: {client: {image: "debian:12", configs: [motd], extra_hosts: ["a.test:127.0.0.1"]}}
configs: {motd: {content: hello}}
`,
    asked: `services: {client: {image: "debian:12"}, db: {image: "debian:12", secrets: [key]}}
secrets: {key: {environment: NO_SUCH_VARIABLE}}
`,
    outside: `services: {client: {image: "debian:12", secrets: [key]}}
secrets: {key: {file: ../key}}
`,
  };
  for (const [name, compose] of Object.entries(variants)) {
    const files = { ...terminalBench, 'docker-compose.yaml': compose };
    for (const [path, text] of Object.entries(files)) await fixture.write(`tb/${name}/${path}`, text);
  }
  const { refused, needs } = await checked(fixture, `terminal-bench:${fixture.root}/tb`);
  const ofNeed = (name: string) =>
    needs.filter(({ need }) => need === name).map(({ example, count }) => [example, count]);
  assert.deepEqual(ofNeed('image build'), [['added', 1]]);
  assert.deepEqual(ofNeed('names of hosts'), [['added', 1]]);
  assert.deepEqual(ofNeed('variables of the host'), [['asked', 1]]);
  assert.deepEqual(
    refused.map(({ reason, example }) => [reason, example]),
    [["docker-compose.yaml: secrets.key.file: expected a path in the task's own folder", 'outside']],
  );
});

it('says what tasks need: networks, images and solutions, and more than the host has', async () => {
  await using fixture = await createDataSetFixture();
  const { 'solution.sh': _, ...unsolved } = terminalBench;
  const downloading = '#!/bin/bash\n# curl https://a.example\napt-get -qq update\n';
  const variants: Readonly<Record<string, Readonly<Record<string, string>>>> = {
    local: {
      ...terminalBench,
      'run-tests.sh': '# pip install pytest\ncurl http://localhost:80/\n',
      'tests/test_outputs.py': 'open("/home/agent/out"), open("/app/out.txt")\n',
    },
    online: {
      ...unsolved,
      'run-tests.sh': `${downloading}cat /srv/a $X/app/a http://b/app/a\n`,
      Dockerfile: 'FROM debian\nRUN true && \\\n  pip install x\n',
    },
    large: { ...terminalBench, 'docker-compose.yaml': 'services: {client: {build: ., cpus: 9, mem_limit: 9g}}\n' },
    shell: { ...terminalBench, 'task.yaml': 'instruction: a\nrun_tests_in_same_shell: true\n' },
    unjudged: { ...terminalBench, 'task.yaml': 'instruction: a\nparser_name: dbt\n' },
  };
  for (const [name, files] of Object.entries(variants))
    for (const [path, text] of Object.entries(files)) await fixture.write(`tb/${name}/${path}`, text);
  const { tasks, usable, refused, graded, needs } = await checked(fixture, `terminal-bench:${fixture.root}/tb`);
  assert.deepEqual([tasks, usable], [5, 3]);
  assert.deepEqual(
    refused.map(({ reason, got, example }) => [reason, got.map(({ value }) => value), example]),
    [
      ['expected at most the 8 CPUs of this host', ['9'], 'large'],
      ['task.yaml: expected a parser_name of pytest, swebench, sweperf, mlebench, swelancer', ['dbt'], 'unjudged'],
    ],
  );
  assert.deepEqual(
    graded.map(({ sandbox, count, example }) => [sandbox, count, example]),
    [
      ['snapshot-or-fresh', 2, 'local'],
      ['same', 1, 'shell'],
    ],
  );
  assert.equal(needs.find(({ need }) => need === 'a snapshot')?.place, 'tests/test_outputs.py: /home/agent/out');
  assert.equal(needs.find(({ need }) => need === 'root for the work')?.place, 'tests/test_outputs.py: /app/out.txt');
  assert.deepEqual(Object.fromEntries(needs.map(({ need, example }) => [need, example])), {
    container: 'local',
    'a workdir for the tests': 'local',
    'a snapshot': 'local',
    'image pull': 'local',
    'image build': 'online',
    'network for the build': 'online',
    'network for the tests': 'online',
    'root for the tests': 'online',
    'root for the work': 'local',
    'a running service': 'local',
    'a reference solution': 'online',
    "the agent's sandbox": 'shell',
    "the agent's processes": 'shell',
  });
});

it('counts what the tests of a task have of their own: an image, its build, and limits', async () => {
  await using fixture = await createDataSetFixture();
  const separate = (fields = '') =>
    `[environment]\ndocker_image = "debian:12"\n[verifier]\nenvironment_mode = "separate"\n[verifier.environment]\n${fields}`;
  const dockerfile = { 'tests/Dockerfile': 'FROM debian:12\nRUN pip install x\nCOPY . /tests\n' };
  const variants: Readonly<Record<string, Readonly<Record<string, string>>>> = {
    built: { 'task.toml': separate('memory_mb = 4000\n'), ...dockerfile },
    heavy: { 'task.toml': separate('memory_mb = 9000\nstorage_mb = 30000\n') },
    named: { 'task.toml': separate('docker_image = "judge:1"\n') },
    wide: { 'task.toml': separate('cpus = 9\n') },
  };
  for (const [name, own] of Object.entries(variants)) {
    const files = { 'instruction.md': 'a', 'tests/test.sh': 'true', ...own };
    for (const [path, text] of Object.entries(files)) await fixture.write(`set/${name}/${path}`, text);
  }
  const { usable, images, largest, refused, needs } = await checked(fixture, `harbor:${fixture.root}/set`);
  assert.deepEqual([usable, images, largest], [3, 3, { cpus: 1, memoryMb: 9000, diskMb: 30_000 }]);
  assert.deepEqual(
    refused.map(({ reason, got, example }) => [reason, got[0]?.value, example]),
    [['expected at most the 8 CPUs of this host', '9', 'wide']],
  );
  const examples = Object.fromEntries(needs.map(({ need, count, example }) => [need, [count, example]]));
  assert.deepEqual(examples['an image of the tests'], [2, 'built']);
  assert.deepEqual(examples['image build'], [1, 'built']);
  assert.deepEqual(examples['network for the build'], [1, 'built']);
  assert.deepEqual(examples['image pull'], [3, 'built']);
  assert.deepEqual(examples['much memory'], [1, 'heavy']);
});

it('counts the networks that single steps of a task need', async () => {
  await using fixture = await createDataSetFixture();
  const listed = 'network_mode = "allowlist", allowed_hosts = ["a.example"]';
  const variants = {
    'for-agent': `agent = { ${listed} }`,
    'for-tests': `verifier = { ${listed} }`,
    'for-nothing': 'agent = { network_mode = "no-network" }\nverifier = { network_mode = "no-network" }',
  };
  for (const [name, step] of Object.entries(variants)) {
    const toml = `[environment]\ndocker_image = "any"\n[[steps]]\nname = "one"\n[[steps]]\nname = "two"\n${step}\n`;
    await fixture.write(`set/${name}/task.toml`, toml);
    for (const path of ['steps/one/instruction.md', 'steps/two/instruction.md', 'tests/test.sh'])
      await fixture.write(`set/${name}/${path}`, 'true');
  }
  const { usable, settings, needs } = await checked(fixture, `harbor:${fixture.root}/set`);
  assert.equal(usable, 3);
  assert.deepEqual(settings, [{ setting: 'TEMPER_NETWORK=allowlist', count: 2, example: 'for-agent' }]);
  const examples = Object.fromEntries(needs.map(({ need, count, example }) => [need, [count, example]]));
  assert.deepEqual(examples['network for the agent'], [1, 'for-agent']);
  assert.deepEqual(examples['network for the tests'], [1, 'for-tests']);
});

it('names the file of a refused task as its directory has it', async () => {
  await using fixture = await createDataSetFixture();
  const composed = {
    'tests/test.sh': 'true',
    'environment/docker-compose.yaml': 'services: {main: {privileged: true}}',
  };
  for (const [name, own] of Object.entries({ composed, untested: { 'solution/solve.sh': 'true' } })) {
    const files = { 'instruction.md': 'a', 'task.toml': '[environment]\ndocker_image = "debian:12"\n', ...own };
    for (const [path, text] of Object.entries(files)) await fixture.write(`set/${name}/${path}`, text);
  }
  const { refused } = await checked(fixture, `harbor:${fixture.root}/set`);
  assert.deepEqual(refused.map(({ reason }) => reason).sort(), [
    'environment/docker-compose.yaml: services.main.privileged: expected a key that a sandbox supports',
    'tests/test.sh: expected a file',
  ]);
});

it('names tmux for typed solutions, where their image is known to lack it', async () => {
  await using fixture = await createDataSetFixture();
  const { 'solution.sh': _, ...unsolved } = terminalBench;
  const typed = { ...unsolved, 'solution.yaml': '[{command: echo hello}]\n' };
  const variants = {
    lacks: typed,
    installs: { ...typed, Dockerfile: 'FROM debian:bookworm\nRUN apt-get install -y tmux\nWORKDIR /srv\n' },
    copies: {
      ...typed,
      Dockerfile: `${terminalBench.Dockerfile}COPY set-up.sh /\n`,
      'set-up.sh': 'apt-get install tmux\n',
    },
    unknown: { ...typed, Dockerfile: 'FROM ghcr.io/laude-institute/t-bench/ubuntu-24-04:latest\nWORKDIR /srv\n' },
    named: { ...typed, 'docker-compose.yaml': 'services: {client: {image: "python:3.12"}}\n' },
    script: terminalBench,
  };
  for (const [name, files] of Object.entries(variants))
    for (const [path, text] of Object.entries(files)) await fixture.write(`tb/${name}/${path}`, text);
  const { usable, needs } = await checked(fixture, `terminal-bench:${fixture.root}/tb`);
  const { count, example } = needs.find(({ need }) => need === 'tmux for the solution') ?? {};
  assert.deepEqual([usable, count, example], [6, 2, 'lacks']);
});

it('says which tasks need an agent that calls host tools, or an environment, and which collect what the agent left', () => {
  const files = {
    'task.toml': '[environment]\ndocker_image = "any"\n',
    'instruction.md': 'Answer.',
    'tests/test.sh': 'echo 1 > /logs/verifier/reward.txt',
  };
  const task = (toml: string) => readHarborTask(filesOf({ ...files, 'task.toml': files['task.toml'] + toml }));
  const examples = {
    'host tools': '[tools]\nhost = ["answer"]\n',
    'an OpenEnv environment': '[tools]\nhost = ["environment"]\n',
    'commands that collect': '[[verifier.collect]]\ncommand = "pg_dump >rows.sql"\n',
  } as const;
  for (const [name, toml] of Object.entries(examples)) {
    const { isNeeded } = taskNeeds[name as keyof typeof examples];
    assert.deepEqual([isNeeded(task('')), isNeeded(task(toml))], [false, true], name);
  }
});

it('counts the tasks that need other settings, by the setting that lets them run', async () => {
  await using fixture = await createDataSetFixture();
  const variants = {
    listed: '[agent]\nnetwork_mode = "allowlist"\nallowed_hosts = ["a.example"]\n',
    open: '[agent]\nnetwork_mode = "allowlist"\nallowed_hosts = ["a.example"]\n[verifier]\nnetwork_mode = "public"\n',
    optional: '',
    given: `[environment.env]\nA = "\${GIVEN}"\nB = "\${ABSENT:-b}"\n`,
    variables: `[environment.env]\nA = "\${ONE}"\n[verifier.env]\nB = "\${TWO}"\n`,
    tools: '[tools]\nhost = ["look_up", "submit", "weigh"]\n',
    both: `[agent]\nnetwork_mode = "public"\n[environment.env]\nA = "\${ONE}"\n`,
  };
  for (const [name, toml] of Object.entries(variants)) {
    await fixture.write(`set/${name}/task.toml`, `[environment]\ndocker_image = "any"\n${toml}`);
    await fixture.write(`set/${name}/instruction.md`, 'Do it.');
    await fixture.write(`set/${name}/tests/test.sh`, 'echo 1 >/logs/verifier/reward.txt');
  }
  const { usable, ungranted, settings } = await checked(fixture, `harbor:${fixture.root}/set`);
  assert.deepEqual([usable, ungranted], [7, 5]);
  assert.deepEqual(Object.fromEntries(settings.map(({ setting, count, example }) => [setting, [count, example]])), {
    'TEMPER_NETWORK=public': [2, 'both'],
    'TEMPER_NETWORK=allowlist': [1, 'listed'],
    'TEMPER_TASK_VARIABLES=ONE': [1, 'both'],
    'TEMPER_TASK_VARIABLES=ONE,TWO': [1, 'variables'],
    'TEMPER_TOOLS, with a module that has look_up, weigh': [1, 'tools'],
  });
});

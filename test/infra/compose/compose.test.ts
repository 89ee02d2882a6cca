import assert from 'node:assert/strict';
import { it } from 'node:test';
import { type ComposeFormat, mainImage, readCompose } from '../../../infra/compose/compose.ts';
import { splitWords } from '../../../infra/compose/values.ts';
import { writeCompose } from '../../../infra/compose/write.ts';
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
const read = (source: string) => readCompose({ text: source, file: 'compose.yaml', files }, format);
const failure = (message: RegExp) => (error: unknown) =>
  error instanceof TemperFailure && error.type === 'UnsupportedTask' && message.test(error.message)
    ? true
    : assert.fail(`expected ${message}, got ${error}`);

const full = `services:
  web:
    image: web:2
    container_name: front
    hostname: www
    command: python -m 'http server' "\${DIR}"
    entrypoint: []
    working_dir: /srv
    user: 1000
    environment: {PRICE: $$5, COUNT: 3}
    tmpfs: /run:size=10m
    tty: true
    networks: {inner: {aliases: [shop]}}
    depends_on: {db: {condition: service_healthy}, migrate: {condition: service_completed_successfully}}
    ports: ["8080:80"]
    restart: always
    shm_size: 128m
    links: ["db:database"]
  migrate: {image: "\${MAIN_IMAGE_NAME}", command: [migrate, "$$HOME"], depends_on: [db, main]}
  db:
    build: {context: ./db}
    volumes: [data:/data, ./seed.sql:/seed.sql:ro, /var/cache, {type: tmpfs, target: /fast}]
    healthcheck: {test: [CMD, ready], interval: 1m30s, timeout: 500ms, start_period: 2s, retries: 7}
    cap_drop: [ALL]
    init: true
    ulimits: {nofile: {soft: 1, hard: 2}}
    privileged: false
  debug: {image: debug, profiles: [debug], privileged: true}
volumes: {data: null}
networks: {inner: {driver: bridge}}
`;

it('reads further services in the order in which they start', () => {
  const { main, beside } = read(full);
  assert.deepEqual([main.image, main.env], [null, {}]);
  assert.deepEqual(
    beside?.services.map(({ name }) => name),
    ['db', 'migrate', 'web'],
  );
  const [db, migrate, web] = beside?.services ?? [];
  assert.deepEqual(db?.image, { context: 'db', dockerfile: 'Dockerfile' });
  assert.deepEqual(db?.mounts, [{ source: 'seed.sql', target: '/seed.sql', readOnly: true }]);
  assert.deepEqual(db?.volumes, [
    { name: 'data', target: '/data', readOnly: false },
    { name: null, target: '/var/cache', readOnly: false },
  ]);
  assert.deepEqual(db?.tmpfs, [{ path: '/fast', sizeMb: 1024 }]);
  assert.deepEqual(db?.aliases, ['database']);
  assert.deepEqual(db?.healthCheck, {
    test: ['CMD', 'ready'],
    intervalMs: 90_000,
    timeoutMs: 500,
    startPeriodMs: 2_000,
    retries: 7,
  });
  assert.deepEqual(
    [migrate?.image, migrate?.command, migrate?.dependsOn],
    ['main', ['migrate', '$HOME'], [{ service: 'db', until: 'started' }]],
  );
  assert.deepEqual(web?.command, ['python', '-m', 'http server', '/tests']);
  assert.deepEqual(
    [web?.entrypoint, web?.workdir, web?.user, web?.tty, web?.restarts],
    [[], '/srv', '1000', true, true],
  );
  assert.deepEqual(web?.env, { PRICE: '$5', COUNT: '3' });
  assert.deepEqual(
    [web?.aliases, web?.tmpfs, web?.sharedMemoryMb],
    [['front', 'www', 'shop'], [{ path: '/run', sizeMb: 10 }], 128],
  );
  assert.deepEqual(web?.dependsOn, [
    { service: 'db', until: 'healthy' },
    { service: 'migrate', until: 'completed' },
  ]);
});

it('reads the variables of files, over which go those of the service', () => {
  const env = (fields: string) => read(`services: {db: {image: a, ${fields}}}`).beside?.services[0]?.env;
  assert.deepEqual(env('env_file: ./db.env, environment: {EMPTY: full}'), {
    USER: 'shop',
    NAME: 'shop\tone',
    URL: 'db://shop@db/shop\tone',
    PRICE: "$5 \\n it's",
    EMPTY: 'full',
    LINES: 'one\ntwo',
    TOKEN: `\${TOKEN:-none}`,
    HASH: 'a#b',
    COST: '$5',
  });
  const optional = '{path: no.env, required: false}';
  assert.deepEqual(env(`env_file: [${optional}, {path: raw.env, format: raw}]`), {
    NAME: '"quoted" # all of it',
    USER: '$USER',
  });
  assert.equal(env('env_file: [raw.env, db.env]')?.NAME, 'shop\tone');
});

it('fills a compose file with the values of .env, over which go those of the harness', () => {
  const [db] = read(`services: {db: {image: "db:$TAG", command: ["$DIR", "\${TAG:-17}"]}}`).beside?.services ?? [];
  assert.deepEqual([db?.image, db?.command], [{ name: 'db:16-alpine' }, ['/tests', '16-alpine']]);
});

it('reads names of hosts, limits of processes and capabilities', () => {
  const { main, beside, hosts } = read(`services:
  main: {extra_hosts: {shop.test: [127.0.0.1, "::1"], host.docker.internal: host-gateway}, ulimits: {stack: -1}}
  db:
    image: a
    init: true
    extra_hosts: ["shop.test=[::1]", "shop.test:127.0.0.1", "away.test:10.0.0.1", "host.docker.internal:host-gateway"]
    cap_drop: [cap_chown, KILL]
    ulimits: {nofile: {soft: 100, hard: "200"}, memlock: -1, rtprio: 99}
`);
  assert.deepEqual(hosts, [
    { name: 'shop.test', address: '127.0.0.1' },
    { name: 'shop.test', address: '::1' },
    { name: 'away.test', address: '10.0.0.1' },
  ]);
  assert.deepEqual(main.ulimits, [{ name: 'stack', soft: -1, hard: -1 }]);
  const [db] = beside?.services ?? [];
  assert.deepEqual([db?.init, db?.dropped], [true, ['CHOWN', 'KILL']]);
  assert.deepEqual(db?.ulimits, [
    { name: 'nofile', soft: 100, hard: 200 },
    { name: 'memlock', soft: -1, hard: -1 },
  ]);
});

it('ignores what changes no verdict', () => {
  const ignored =
    'labels: {a: b}, stop_grace_period: 1m, stop_signal: SIGINT, logging: {driver: none}, attach: false, pids_limit: 5';
  assert.equal(
    read(`services: {db: {image: a, ${ignored}, develop: {watch: []}, cpu_shares: 5}}`).beside?.services.length,
    1,
  );
});

it('writes services so that they are read again as they were', () => {
  const { beside } = read(full);
  assert.ok(beside !== null);
  assert.deepEqual(read(writeCompose(beside)).beside, beside);
});

it('splits a command at its spaces, as a shell does', () => {
  assert.deepEqual(splitWords(`a  "b c" 'd $e' f\\ g h"i\\"j"`), ['a', 'b c', 'd $e', 'f g', 'hi"j']);
});

const refused: readonly (readonly [string, RegExp])[] = [
  ['db: {privileged: true, image: a}', /services\.db\.privileged: expected a key that a sandbox supports, got true/],
  ['db: {network_mode: host, image: a}', /services\.db\.network_mode: expected .*, got "host"/],
  ['db: {devices: ["/dev/kvm"], image: a}', /services\.db\.devices: expected/],
  ['db: {pid: host, image: a}', /services\.db\.pid: expected/],
  ['db: {cap_add: [SYS_ADMIN], image: a}', /services\.db\.cap_add: expected/],
  ['db: {security_opt: ["seccomp:unconfined"], image: a}', /services\.db\.security_opt: expected/],
  [
    'db: {extra_hosts: ["host:10.0.0"], image: a}',
    /services\.db\.extra_hosts: expected names with their addresses, such as "db\.test:127\.0\.0\.1", got host:10\.0\.0/,
  ],
  [
    'db: {extra_hosts: ["main:10.0.0.1"], image: a}\n  main: {}',
    /services\.db\.extra_hosts: expected no name of a service of the file, got main/,
  ],
  [
    'db: {extra_hosts: ["x:10.0.0.1"], image: a}\n  main: {extra_hosts: {x: 10.0.0.2}}',
    /services\.main\.extra_hosts: expected the same addresses of x everywhere, since all services share .*, got 10\.0\.0\.2, and 10\.0\.0\.1 of db/,
  ],
  [
    'db: {env_file: ../a.env, image: a}',
    /services\.db\.env_file: expected a path in the task's own folder, got \.\.\/a/,
  ],
  [
    'db: {env_file: no.env, image: a}',
    /services\.db\.env_file: expected a file of .*, got \.\/no\.env, which is missing/,
  ],
  [
    'db: {env_file: [{path: raw.env, format: odd}], image: a}',
    /services\.db\.env_file\.format: expected raw, or none, got odd/,
  ],
  ['db: {ulimits: {speed: 1}, image: a}', /services\.db\.ulimits\.speed: expected one of core, .*, got speed/],
  ['db: {ulimits: {nofile: many}, image: a}', /services\.db\.ulimits\.nofile: expected a whole number, .* got many/],
  [
    'db: {ulimits: {nofile: {soft: 2, hard: 1}}, image: a}',
    /services\.db\.ulimits\.nofile: expected a soft limit that the hard one allows, got 2 of 1/,
  ],
  ['db: {secrets: [key], image: a}', /services\.db\.secrets: expected/],
  [
    'db: {image: a, volumes: ["/var/run/docker.sock:/var/run/docker.sock"]}',
    /services\.db\.volumes: expected a mount .*docker\.sock/,
  ],
  ['db: {image: a, volumes: ["../up:/up"]}', /services\.db\.volumes: expected a mount/],
  ['db: {image: a, volumes: ["~/up:/up"]}', /services\.db\.volumes: expected a mount/],
  ['db: {image: a, volumes: ["./a:/../:/up"]}', /services\.db\.volumes: expected a mount/],
  [
    'db: {image: a, environment: {TOKEN: "Bearer $TOKEN"}}',
    /services\.db\.environment\.TOKEN: expected only variables of the harness, or one of the host as a whole value, got \$TOKEN/,
  ],
  [
    'db: {build: ../outside}',
    /services\.db\.build\.context: expected a path in the task's own folder, got \.\.\/outside/,
  ],
  ['db: {build: /etc}', /services\.db\.build\.context: expected a path/],
  ['db: {build: {context: ., args: {A: b}}}', /services\.db\.build\.args: expected only the keys context, dockerfile/],
  ['db: {}', /services\.db\.image: expected an image or a build, got neither/],
  ['db: {image: a, depends_on: [cache]}', /services\.db\.depends_on: expected services of the file, got cache/],
  [
    'main: {depends_on: [cache]}\n  db: {image: a}',
    /services\.main\.depends_on: expected services of the file, got cache/,
  ],
  [
    'db: {image: a, depends_on: [web]}\n  web: {image: a, depends_on: [db]}',
    /depends_on: expected no circle, got db → web → db/,
  ],
  [
    'db: {image: a, expose: [80]}\n  web: {image: a, ports: ["8080:80/tcp"]}',
    /services\.web\.ports: expected a port of its own, .* got 80 of db/,
  ],
  [
    'db: {image: a, networks: {inner: {ipv4_address: 10.0.0.2}}}',
    /services\.db\.networks\.inner\.ipv4_address: expected/,
  ],
  ['db: {image: a, hostname: localhost}', /services\.db\.hostname: expected the name of a host, got localhost/],
  ['"10.0.0.1": {image: a}', /expected the name of a host, got 10\.0\.0\.1/],
  [
    'db: {image: a, healthcheck: {test: x, interval: 2h}}',
    /healthcheck\.interval: expected a duration .* of at most an hour, got 2h/,
  ],
  ['db: {image: a, deploy: {replicas: 2}}', /services\.db\.deploy\.replicas: expected 1, got 2/],
  ['db: {image: a, shm_size: 2g}', /services\.db\.shm_size: expected at most its memory of 1024 MB, got 2g/],
  [
    'main: {volumes: ["own:/own"]}\n  db: {image: a}',
    /services\.main\.volumes: expected .* that a further service has, too, got "own:\/own"/,
  ],
  ...['/.temper', '/.temper/claims', '/logs', '/tests/', '/dev/shm'].map((target): readonly [string, RegExp] => [
    `main: {volumes: ["own:${target}"]}\n  db: {image: a, volumes: ["own:/own"]}`,
    /services\.main\.volumes: expected no volume at \/\S+, which temper uses, got "own:\/[.a-z/]+"/,
  ]),
];
for (const [services, message] of refused) {
  it(`refuses ${services.replaceAll(/\s+/g, ' ')} by its field`, () => {
    assert.throws(() => read(`services:\n  ${services}\n`), failure(message));
  });
}

it('refuses volumes and secrets of the host by their names', () => {
  const rest = 'services: {db: {image: a}}\n';
  assert.throws(() => read(`${rest}volumes: {data: {external: true}}\n`), failure(/volumes\.data\.external: expected/));
  assert.throws(
    () => read(`${rest}volumes: {data: {driver: nfs}}\n`),
    failure(/volumes\.data\.driver: expected local, got nfs/),
  );
  assert.throws(
    () => read(`${rest}secrets: {key: {file: ./key}}\n`),
    failure(/compose\.yaml: secrets: expected only the keys/),
  );
});

import Docker from 'dockerode';
import type { HarborTaskFiles } from './harbor-task.ts';

/** A program that keeps a value: `PUT` sets it, and `GET` returns it. */
const keeper = `import http.server
class Keeper(http.server.BaseHTTPRequestHandler):
    value = b'nothing'
    def do_GET(self):
        self.send_response(200); self.end_headers(); self.wfile.write(Keeper.value)
    def do_PUT(self):
        Keeper.value = self.rfile.read(int(self.headers['Content-Length'])); self.send_response(200); self.end_headers()
http.server.HTTPServer(('', 8080), Keeper).serve_forever()
`;
const ask = (address: string): string =>
  `python3 -c 'import urllib.request as r; print(r.urlopen("http://${address}").read().decode())'`;
const tell = (address: string, value: string): string =>
  `python3 -c 'import urllib.request as r; r.urlopen(r.Request("http://${address}", data=b"${value}", method="PUT"))'`;
const healthy = (port: number): string =>
  `healthcheck: {test: ["CMD", "python3", "-c", "import socket; socket.create_connection(('127.0.0.1', ${port}))"], interval: 200ms, retries: 100}`;

/** The label of the image that this process builds for a service. */
const imageLabel = `test.service-tasks=${process.pid}`;

/** Removes the image that was built for a service. */
export async function removeServiceImages(docker = new Docker()): Promise<void> {
  const built = await docker.listImages({ filters: { label: [imageLabel] } });
  for (const { Id } of built) await docker.getImage(Id).remove({ force: true });
}

/** A terminal-bench task whose client has two services beside it: the word that the one has belongs into the other. */
export const serviceTask: Readonly<Record<string, string>> = {
  'task.yaml': 'instruction: Tell the keeper what the pages say.\n',
  'docker-compose.yaml': `services:
  client:
    build:
      context: ./client
      network: none
      dockerfile_inline: |
        FROM temper-tasks:bookworm
        LABEL ${imageLabel}
        COPY given /given/
    working_dir: /app
    depends_on: [pages, keeper]
  pages:
    image: temper-tasks:bookworm
    command: python3 -m http.server 8000 --directory /pages
    volumes: [./pages:/pages:ro]
    mem_limit: 64m
    ${healthy(8000)}
  keeper:
    build: {context: ./keeper, target: keeper, args: {BASE: temper-tasks:bookworm, SAID: 'it''s "$$5" \\'}}
    network_mode: service:pages
    depends_on: {pages: {condition: service_healthy}}
    mem_limit: 64m
    ports: ["8080:8080"]
    ${healthy(8080)}
`,
  'client/given/told': 'of the client',
  'pages/word': 'tulip',
  'keeper/Dockerfile': `ARG BASE=no-such-image
FROM \${BASE} AS keeper
LABEL ${imageLabel}
ARG SAID=nothing
ENV SAID=$SAID
COPY keeper.py /keeper.py
CMD ["sh", "-c", "test \\"$SAID\\" = \\"it's \\\\\\"\\\\$5\\\\\\" \\\\\\\\\\" && exec python3 /keeper.py"]
FROM no-such-image
RUN false
`,
  'keeper/keeper.py': keeper,
  'run-tests.sh': `echo '== short test summary info =='
if [ "$(${ask('keeper:8080')})" = tulip ]; then echo 'PASSED tests::told'; else echo 'FAILED tests::told'; fi
`,
  'solution.sh': `[ "$(cat /given/told)" = 'of the client' ] && ${tell('keeper:8080', 'tulip')}\n`,
  'tests/test_outputs.py': 'def test(): pass\n',
};

interface TaskMaker {
  /** The environment table of a task.toml. */
  readonly environment: string;
  /** Returns tests that pass if a command succeeds. */
  readonly rewarding: (condition: string) => string;
}

/** Tasks in Harbor's format with services, by what they show. The variable TASK_NAME of the host has to be Ada. */
export const tasksWithServices = ({
  environment,
  rewarding,
}: TaskMaker): Readonly<Record<string, HarborTaskFiles>> => ({
  'two services beside it': {
    toml: environment,
    others: {
      'environment/docker-compose.yaml': `services:
  main:
    image: \${MAIN_IMAGE_NAME}
    volumes: ["\${HOST_VERIFIER_LOGS_PATH}:\${ENV_VERIFIER_LOGS_PATH}", "shelf:/shelf:ro"]
    environment: [KEEPER=keeper:8080]
    ulimits: {nofile: 654}
    depends_on: {keeper: {condition: service_healthy}}
  keeper:
    image: \${MAIN_IMAGE_NAME}
    command: [python3, /own/keeper.py]
    volumes: [./keeper.py:/own/keeper.py]
    mem_limit: 64m
    ${healthy(8080)}
  pages:
    image: temper-tasks:bookworm
    command: [sh, -c, 'cp /word /shelf/word; cat /run/secrets/name >>/shelf/name; echo "$$TASK_NAME" >>/shelf/name; exec python3 -m http.server 8000 --directory /shelf']
    environment: [TASK_NAME]
    configs: [word]
    secrets: [name]
    volumes: [shelf:/shelf]
    mem_limit: 64m
    ${healthy(8000)}
volumes: {shelf: {}}
configs: {word: {content: tulip}}
secrets: {name: {environment: TASK_NAME}}
`,
      'environment/keeper.py': keeper,
    },
    solve: `[ "$(${ask('pages:8000/word')})" = "$(cat /shelf/word)" ] && grep -qx AdaAda /shelf/name && [ "$(ulimit -Sn)" = 654 ] && ${tell('keeper:8080', 'tulip')}`,
    test: rewarding(`[ "$(${ask('keeper:8080')})" = tulip ] && [ "$KEEPER" = keeper:8080 ]`),
  },
  'a service of its own for tests with a snapshot': {
    toml: `${environment}[grading]\nsandbox = "snapshot"\n`,
    others: {
      'environment/docker-compose.yaml': `services:
  keeper:
    image: \${MAIN_IMAGE_NAME}
    command: [python3, /keeper.py]
    volumes: [./keeper.py:/keeper.py]
    mem_limit: 64m
    ${healthy(8080)}
`,
      'environment/keeper.py': keeper,
    },
    solve: `${tell('keeper:8080', 'tulip')} && ${ask('keeper:8080')} >/tmp/told`,
    test: rewarding(`[ "$(cat /tmp/told)" = tulip ] && [ "$(${ask('keeper:8080')})" = nothing ]`),
  },
});

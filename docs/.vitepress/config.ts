import { defineConfig } from 'vitepress';

const guides = [
  ['Quick start', 'quick-start'],
  ['Your own repository', 'your-repository'],
  ['Write a task', 'write-a-task'],
  ['Where tests run', 'where-tests-run'],
  ["Harbor's fields", 'harbor'],
  ['Compose files', 'compose-files'],
  ['Data sets', 'data-sets'],
  ['Training runs', 'training-runs'],
  ['A real engine and trainer', 'engine-and-trainer'],
  ['Evaluate and compare', 'evaluate'],
  ['Schedules', 'schedules'],
  ['Grade again', 'regrade'],
  ['Agents', 'agents'],
  ['The terminal agent', 'terminal-agent'],
  ['OpenEnv', 'openenv'],
  ['Grading', 'grading'],
  ['Costs and budgets', 'costs'],
  ['Debug a bad reward', 'debug-a-reward'],
  ['Workflows', 'workflows'],
  ['Operate', 'operate'],
  ['Sandboxes and images', 'sandboxes'],
  ['Sandboxes in Kubernetes', 'kubernetes'],
  ['Network', 'network'],
  ['E2B sandboxes', 'e2b'],
  ['Retention and disk', 'retention'],
  ['Hosts', 'hosts'],
  ['Containers', 'containers'],
  ['The Helm chart', 'chart'],
  ['Scale', 'scale'],
  ['Production Temporal', 'production-temporal'],
];
const reference = [
  ['CLI', 'cli'],
  ['Settings', 'settings'],
  ['Workflow inputs', 'workflow-inputs'],
  ['Failures', 'failures'],
  ['Metrics and search attributes', 'metrics'],
  ['Retention', 'retention'],
];
const design = [
  ['Which groups are trained', 'staleness'],
  ['Estimators', 'estimators'],
  ['Branches and segments', 'branches'],
  ['From diff to verdict', 'verdicts'],
  ['Cases of the gateway', 'gateway-cases'],
];

const items = (folder: string, pages: readonly (readonly string[])[]) =>
  pages.map(([text = '', page = '']) => ({ text, link: `/${folder}/${page}` }));

export default defineConfig({
  title: 'temper',
  description: 'Trains coding agents by reinforcement learning, durably, on Temporal.',
  base: process.env.DOCS_BASE ?? '/',
  cleanUrls: true,
  ignoreDeadLinks: false,
  themeConfig: {
    nav: [
      { text: 'Quick start', link: '/guides/quick-start' },
      { text: 'Architecture', link: '/architecture' },
      { text: 'Reference', link: '/reference/cli' },
    ],
    sidebar: [
      { text: 'Guides', items: items('guides', guides) },
      {
        text: 'Reference',
        items: [
          ...items('reference', reference),
          { text: 'Glossary', link: '/glossary' },
          { text: 'Benchmarks', link: '/benchmarks' },
        ],
      },
      { text: 'Design', items: [{ text: 'Architecture', link: '/architecture' }, ...items('design', design)] },
    ],
    search: { provider: 'local' },
    outline: 'deep',
  },
});

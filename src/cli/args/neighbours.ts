/** Lists the commands and flags of other programs, each with what does the same here. */

const connect = 'to connect a model: braidclaw onboard'
const talk = 'for a conversation: braidclaw agent; for one turn: braidclaw agent -m TEXT'
const earlier = 'earlier conversations: braidclaw memory list; to continue the latest: braidclaw agent -c'
const models = 'who can be asked: braidclaw provider list; to choose: -m PROVIDER/MODEL'
const update = 'to update, run "git pull && npm ci" in the folder it was installed from'
const check = 'to check everything: braidclaw doctor'
const server = 'to answer over HTTP: braidclaw serve'
const changes = 'what waits for a decision: braidclaw changes list, braidclaw approvals list'
const tools = 'programs of yours become tools: braidclaw tool list (docs/tools.md)'
const protocols = `other programs talk to it over HTTP: braidclaw serve (docs/gateway.md); ${tools}`
const texts = 'instructions are texts that the agent reads (docs/project-instructions.md)'
const rules = 'rules and threads of your own: docs/rules.md, docs/threads.md'
const timed = 'what runs by the clock: braidclaw schedule list'
const move = 'to keep or bring a home: braidclaw home backup, braidclaw home restore'

type Hints = { readonly [word: string]: string }

/** Lists everyday words: a longer line that begins with one is a question, unless a sub-command follows. */
const everydayCommands: Hints = {
  ...{ login: connect, logout: connect, auth: connect, signin: connect, setup: connect, configure: connect, key: connect, keys: connect },
  ...{ models, model: models, providers: models },
  ...{ update, upgrade: update, install: update, uninstall: 'to take the service away: braidclaw service uninstall' },
  ...{ chat: talk, repl: talk, start: talk, ask: talk, prompt: talk, tui: talk, attach: talk },
  ...{ history: earlier, resume: earlier, continue: earlier, conversations: earlier, threads: earlier },
  ...{ gateway: server, web: server, dashboard: server, ui: server },
  ...{ status: check, info: check, debug: check },
  ...{ stop: 'to stop every tool: braidclaw estop', kill: 'to stop every tool: braidclaw estop' },
  ...{ settings: 'the settings: braidclaw config show', permissions: 'what is permitted: braidclaw security show' },
  ...{ channels: 'the channels: braidclaw config show', logs: 'the log of the service: braidclaw service logs' },
  ...{ usage: 'what was spent: braidclaw cost', stats: 'what was spent: braidclaw cost', tasks: timed, jobs: timed },
  commands: 'all commands: braidclaw --help',
}

/** Lists words with which no question begins by itself. */
const strangeCommands: Hints = {
  ...{ plugin: tools, plugins: tools, extension: tools, extensions: tools, integrations: tools, connectors: tools },
  ...{ mcp: protocols, 'mcp-server': protocols, 'app-server': protocols, acp: protocols, stdio: protocols },
  ...{ skill: texts, skills: texts, sop: texts, sops: texts, recipe: texts, recipes: texts, templates: texts },
  ...{ hook: rules, hooks: rules, webhooks: rules },
  ...{ wiggum: timed, cron: timed, loop: timed, heartbeat: timed },
  ...{ exec: talk, eval: talk, plan: 'to look without changing anything: braidclaw agent --autonomy readonly' },
  ...{ review: changes, apply: changes, diff: changes, revert: 'to take changes back: braidclaw undo' },
  ...{ session: earlier, sessions: earlier, fork: earlier, agents: 'each agent has a name: braidclaw agent --agent NAME' },
  ...{ import: move, export: move, migrate: move },
}

const subcommands: readonly string[] = [
  ...['list', 'ls', 'login', 'logout', 'add', 'remove', 'rm', 'delete', 'show', 'status', 'set', 'get', 'test', 'now'],
  ...['install', 'uninstall', 'enable', 'disable', 'run', 'new', 'create', 'init'],
]

const level = '--autonomy full (docs/security.md says what that means)'
const model = '-m PROVIDER/MODEL, or --model'
const text = 'the answer is printed as it is: braidclaw "question"'
const picture = 'pictures are read from messages of the channels (docs/telegram.md)'
const system = '-s, a system prompt: a text, or a file'

/** Lists the flags of turns. */
const flags: Hints = {
  ...{ '-p': text, '--print': text, '--prompt': 'agent -m "message"', '--non-interactive': text, '--headless': text },
  ...{ '--silent': '-q, or --quiet' },
  ...{ '-x': 'ask for it: -s "Only the code."', '--extract': 'ask for it: -s "Only the code."' },
  ...{ '--schema': '--json, one object with the answer in "result"', '-o': '--json, or > FILE', '--output': '--json, or > FILE' },
  ...{ '-a': '--autonomy LEVEL, or --auto; a file: < FILE', '--attachment': picture, '--image': picture, '-i': picture },
  ...{ '-f': '< FILE', '--file': '< FILE', '-t': '--tools default; a system prompt: -s', '-T': '--tools default' },
  ...{ '--system-prompt': system, '--append-system-prompt': system, '--allowed-tools': '--tools', '--allowedTools': '--tools' },
  ...{ '--yolo': level, '--full-auto': level, '-y': '--auto', '--yes': '--auto', '--dangerously-skip-permissions': level },
  ...{ '--permission-mode': '--autonomy LEVEL', '--ask-for-approval': '--autonomy LEVEL', '--provider': model },
  ...{ '--cd': '-C DIR', '--cwd': '-C DIR', '--dir': '-C DIR', '-d': '-C DIR', '-r': '--resume CONVERSATION' },
  ...{
    '-V': '-v, or --version',
    '--no-color': 'NO_COLOR=1 in the environment',
    '--color': 'NO_COLOR=1 in the environment switches it off',
  },
  ...{ '--verbose': 'BRAIDCLAW_LOG_LEVEL=debug', '--debug': 'BRAIDCLAW_LOG_LEVEL=debug', '--api-key': 'braidclaw onboard keeps a key' },
}

export const neighbours = { everydayCommands, strangeCommands, subcommands, flags } as const
export type Neighbours = typeof neighbours

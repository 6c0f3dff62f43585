/** Says with what each command of the program is driven to show names, stored texts and answers that would drive a terminal. */

import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Case, evil, state } from './driven-case.ts'
import { controlCases } from './driven-control.ts'
import { ctrlC, ctrlD } from './talk.ts'
import { call, scripted } from './turns.ts'

/** Where control characters are refused. */
export const turned = 'a\u202egnp.b'
/** What may be a file's name, a tool's, an agent's. */
export const name = `a${evil}b`

export const reply = () => scripted(state.at, [call(name, {}), call('file_read', { path: name }), { text: `said ${evil}`, chunks: 9 }]).env
export const asking = () => scripted(state.at, [call('good', { [evil]: evil }), { text: evil }]).env

export const fifos = () => join(state.at.dir, 'fifos')

/** An agent behind the FIFOs answers this line. */
function bridged(kind: string, line: string): Case {
  const words = ['bridge', kind, '--fifo-dir', fifos()]
  return { words, says: line, type: [['202e', ctrlC]] }
}

/** For each command of the program's own table what it is to be driven with. */
export const cases: { readonly [command: string]: () => readonly Case[] } = {
  agent: () => [
    { words: ['agent', '-m', evil], env: reply() },
    { words: ['agent', '-C', join(state.at.dir, name), '-m', 'go'], env: reply() },
    { words: ['agent', '-m', 'go', '--json'], env: reply() },
    { words: ['agent', '-m', 'go', '--output-format', 'stream-json'], env: reply() },
    { words: ['agent', '-m', 'go'], env: asking(), type: [['[y/N/a]', 'y\n']] },
    { words: ['agent', '-m', 'go', '--resume', evil] },
    {
      words: ['agent'],
      env: reply(),
      type: [
        ['> ', 'hi\r'],
        ['said', `/memory ${'said'}\r`],
        ['assistant:', '/tools\r'],
        ['ask_user', '/nothing\r'],
        ['no command', ctrlD],
      ],
    },
  ],
  filter: () => [
    { words: ['filter', evil], env: reply() },
    { words: [`-${evil}`] },
    { words: ['filter', '--tool-backend', evil, '--tools', 'default', 'x'] },
    { words: ['filter', '-x', '-u', evil], env: reply() },
    { words: ['filter', '--schema', 'a', evil], env: reply() },
    ...['--schema', '-a', '-t', '-o'].map((flag) => ({ words: ['filter', flag, evil, 'x'] })),
  ],
  'template new': () => [{ words: ['template', 'new', evil, evil] }, { words: ['template', 'new', 'evil', '-s', evil] }],
  'template list': () => [{ words: ['template', 'list'] }, { words: ['template', 'list', '--json'] }],
  'template show': () => [{ words: ['template', 'show', 'evil'] }, { words: ['template', 'show', evil] }],
  'template edit': () => [{ words: ['template', 'edit', 'evil'], env: { EDITOR: 'true' } }, { words: ['template', 'edit', evil] }],
  'template delete': () => [{ words: ['template', 'delete', 'evil'] }, { words: ['template', 'delete', evil] }],
  init: () => [{ words: ['init', '--workspace', join(state.at.dir, name)], env: { BRAIDCLAW_HOME: join(state.at.dir, 'fresh') } }],
  onboard: () => [{ words: ['onboard'], type: [['Which model should', '\u0003']] }],
  login: () => [{ words: ['login', evil] }, { words: ['login', '--list'] }],
  logout: () => [{ words: ['logout', evil] }],
  'config get': () => [{ words: ['config', 'get', evil] }],
  'config set': () => [{ words: ['config', 'set', evil, evil] }, { words: ['config', 'set', 'log.level', evil] }],
  'config unset': () => [{ words: ['config', 'unset', evil] }],
  'config show': () => [{ words: ['config', 'show'] }, { words: ['config', 'show', '--origin', '--json'] }],
  'config validate': () => [{ words: ['config', 'validate'], env: { BRAIDCLAW_HOME: join(state.at.dir, 'broken') } }],
  'config schema': () => [{ words: ['config', 'schema'] }],
  'provider list': () => [{ words: ['provider', 'list'] }, { words: ['provider', 'list', '--json'] }],
  'provider test': () => [
    { words: ['provider', 'test'], env: scripted(state.at, [{ text: evil }]).env },
    { words: ['provider', 'test', evil] },
  ],
  check: () => [{ words: ['check', `printf '%s' '${evil}'; exit 1`] }, { words: ['check', evil, '--json'] }],
  'check run': () => [{ words: ['check', 'run', evil] }],
  'check init': () => [{ words: ['check', 'init', '-C', join(state.at.dir, name)] }],
  'check list': () => {
    const folder = join(state.at.dir, name)
    mkdirSync(join(folder, '.braidclaw'), { recursive: true })
    writeFileSync(join(folder, '.braidclaw/checks.toml'), '[checks.a]\ncommand = "x"\n')
    return [{ words: ['check', 'list', '-C', folder] }]
  },
  'tool list': () => [
    { words: ['tool', 'list', '--tools', join(state.at.home, '.braidclaw/tools')] },
    { words: ['tool', 'list', '--json', '--tools', join(state.at.home, '.braidclaw/tools')] },
  ],
  'tool run': () => [
    { words: ['tool', 'run', 'file_list', '--json', '{"path":"."}'] },
    { words: ['tool', 'run', 'file_read', '--json', JSON.stringify({ path: name })] },
    { words: ['tool', 'run', name] },
    { words: ['tool', 'run', 'time', '--json', evil] },
  ],
  'tool describe': () => [{ words: ['tool', 'describe', join(state.at.home, '.braidclaw/tools')] }],
  'tool new': () => [{ words: ['tool', 'new', name] }],
  'tool loop': () => [{ words: ['tool', 'loop', 'x', 'y', 'default', '3'], env: reply() }],
  'session load': () => [{ words: ['session', 'load'] }, { words: ['session', 'load', '--json'] }],
  'session append': () => [{ words: ['session', 'append', evil, 'x'] }],
  'session count': () => [{ words: ['session', 'count'] }],
  'session clear': () => [{ words: ['session', 'clear', '--agent', evil] }],
  'session list': () => [{ words: ['session', 'list'] }, { words: ['session', 'list', '--json'] }],
  'session show': () => [{ words: ['session', 'show', 'last'] }, { words: ['session', 'show', evil] }],
  'session rename': () => [{ words: ['session', 'rename', 'last', evil] }],
  'session fork': () => [{ words: ['session', 'fork', 'last'] }, { words: ['session', 'fork', evil] }],
  'session delete': () => [{ words: ['session', 'delete', 'last'], type: [['[y/N]', '\r']] }],
  'session export': () => [{ words: ['session', 'export', 'last', join(state.at.dir, name)] }],
  'session import': () => [{ words: ['session', 'import', join(state.at.dir, name, 'none')] }],
  reset: () => [{ words: ['reset', '--agent', evil] }],
  compose: () => [{ words: ['compose'] }],
  log: () => [{ words: ['log', evil] }],
  'memory list': () => [{ words: ['memory', 'list'] }, { words: ['memory', 'list', '--json'] }],
  'memory search': () => [{ words: ['memory', 'search', 'said'] }, { words: ['memory', 'search', evil] }],
  'memory show': () => [
    { words: ['memory', 'show', 'last'] },
    { words: ['memory', 'show', 'last', '--json'] },
    { words: ['memory', 'show', evil] },
  ],
  'memory clear': () => [{ words: ['memory', 'clear'] }],
  'memory export': () => [{ words: ['memory', 'export'] }],
  'memory pin': () => [{ words: ['memory', 'pin', `${turned}2`] }],
  'memory pins': () => [{ words: ['memory', 'pins'] }],
  'memory unpin': () => [{ words: ['memory', 'unpin', '1'] }, { words: ['memory', 'unpin', evil] }],
  'receipt list': () => [{ words: ['receipt', 'list'] }, { words: ['receipt', 'list', '--json'] }],
  'receipt show': () => [{ words: ['receipt', 'show', state.receipt] }, { words: ['receipt', 'show', evil] }],
  'receipt verify': () => [{ words: ['receipt', 'verify', '--deep'] }, { words: ['receipt', 'verify', '--against', evil] }],
  'receipt accept': () => [{ words: ['receipt', 'accept'] }, { words: ['receipt', 'accept', '--note', evil] }],
  'receipt rotate': () => [{ words: ['receipt', 'rotate'] }],
  'receipt anchor': () => [{ words: ['receipt', 'anchor', '--to', `/nowhere/${name}`] }],
  'approvals list': () => [{ words: ['approvals', 'list'] }, { words: ['approvals', 'list', '--all', '--json'] }],
  'approvals allow': () => [{ words: ['approvals', 'allow', evil] }],
  'approvals deny': () => [{ words: ['approvals', 'deny', state.approval, '--note', evil] }],
  'approvals show': () => [{ words: ['approvals', 'show', state.changes] }, { words: ['approvals', 'show', evil] }],
  'approvals rules': () => [{ words: ['approvals', 'rules', 'list'] }, { words: ['approvals', 'rules', 'revoke', evil] }],
  'changes list': () => [{ words: ['changes', 'list'] }, { words: ['changes', 'list', '--json'] }],
  'changes show': () => [
    { words: ['changes', 'show', 'last'] },
    { words: ['changes', 'show', 'last', '--json'] },
    { words: ['changes', 'show', evil] },
  ],
  'changes drop': () => [{ words: ['changes', 'drop', evil] }],
  'changes apply': () => [{ words: ['changes', 'apply', evil] }],
  'changes restore': () => [{ words: ['changes', 'restore', 'last', evil] }, { words: ['changes', 'restore', evil, 'x'] }],
  'changes redo': () => [{ words: ['changes', 'redo', evil] }],
  undo: () => [{ words: ['undo', evil] }],
  budget: () => [{ words: ['budget'] }, { words: ['budget', '--json'] }],
  'run list': () => [{ words: ['run', 'list'] }, { words: ['run', 'list', '--json'] }],
  'run report': () => [{ words: ['run', 'report', state.run] }, { words: ['run', 'report', evil, '--html'] }],
  'run show': () => [
    { words: ['run', 'show', state.run] },
    { words: ['run', 'show', state.run, '--json'] },
    { words: ['run', 'show', evil] },
  ],
  'export trajectories': () => [
    { words: ['export', 'trajectories', '--format', 'atif'] },
    { words: ['export', 'trajectories', '--task', evil] },
    { words: ['export', 'trajectories', '--run', evil, '--since', evil] },
  ],
  rollout: () => [{ words: ['rollout', '--task', join(state.at.dir, name), '--check', evil] }, { words: ['rollout', '--task', evil] }],
  replay: () => [{ words: ['replay', state.run] }, { words: ['replay', '--all', '--json'] }, { words: ['replay', evil] }],
  rebuild: () => [{ words: ['rebuild', '--check'] }],
  verify: () => [{ words: ['verify', '--threads', `/nowhere/${name}`] }],
  'policy explain': () => [
    { words: ['policy', 'explain', '--', 'cat', name] },
    { words: ['policy', 'explain', '--tool', name] },
    { words: ['policy', 'explain', '--tool', 'time', '--args', evil] },
  ],
  'structure check': () => [{ words: ['structure', 'check', '--at', join(state.at.dir, name)] }],
  'structure explain': () => [{ words: ['structure', 'explain', 'x', '--at', join(state.at.dir, name)] }],
  'policy test': () => [{ words: ['policy', 'test', `/nowhere/${name}`] }],
  'security show': () => [
    { words: ['security', 'show', '--workspace', join(state.at.dir, name)] },
    { words: ['security', 'show', '--json'] },
  ],
  estop: () => [{ words: ['estop', '--reason', evil] }, { words: ['doctor'] }, { words: ['estop', '--clear'] }],
  daemon: () => [
    { words: ['daemon', '--fifo-dir', join(state.at.dir, name)], type: [['ready:', ctrlC]] },
    { words: ['daemon', '--bridge', evil] },
  ],
  'bridge interact': () => [bridged('interact', `cli\t${evil}`)],
  'bridge cli': () => [bridged('cli', `cli\t${evil}`), { words: ['bridge', 'cli', '--channel', `\t${evil}`] }],
  'bridge discord': () => [{ words: ['bridge', 'discord', '--fifo-dir', fifos()] }],
  'bridge brain': () => [{ words: ['bridge', 'brain', '--fifo-dir', fifos()], type: [['ready:', ctrlC]] }],
  'bridge claw': () => [{ words: ['bridge', 'claw', '--fifo-dir', fifos()], type: [['ready:', ctrlC]] }],
  'mcp add': () => [{ words: ['mcp', 'add', evil, '--', name] }, { words: ['mcp', 'add', 'x', '--yes', '--', name] }],
  'mcp serve': () => [{ words: ['mcp', 'serve', '--tools', `/nowhere/${name}`] }],
  doctor: () => [{ words: ['doctor', '--workspace', join(state.at.dir, name)] }, { words: ['doctor', '--json'] }],
  trust: () => [{ words: ['trust', join(state.at.dir, name)] }, { words: ['trust', '--list'] }, { words: ['trust', '--list', '--json'] }],
  'provider models': () => [{ words: ['provider', 'models', 'odd'] }, { words: ['provider', 'models', evil] }],
  cost: () => [{ words: ['cost', '--by', evil] }, { words: ['cost', '--by', 'model'] }, { words: ['cost', '--by', 'model', '--json'] }],
  serve: () => [
    { words: ['serve', '--token-file', `/nowhere/${name}`] },
    { words: ['serve', '--port', '0', '-C', join(state.at.dir, name)], type: [['ready:', ctrlC]] },
  ],
  'service install': () => [{ words: ['service', 'install', '--print', '--manager', 'launchd', '--host', evil] }],
  'service start': () => [{ words: ['service', 'start', '--manager', evil] }],
  'service stop': () => [{ words: ['service', 'stop', '--manager', evil] }],
  'service restart': () => [{ words: ['service', 'restart', '--manager', evil] }],
  'service status': () => [{ words: ['service', 'status', '--manager', evil] }],
  'service logs': () => [{ words: ['service', 'logs', '--manager', 'background'] }],
  'service uninstall': () => [{ words: ['service', 'uninstall', '--manager', evil] }],
  'token new': () => [{ words: ['token', 'new', evil] }, { words: ['token', 'new', 'a', '--folder', `/nowhere/${name}`] }],
  'token list': () => [{ words: ['token', 'list'] }, { words: ['token', 'list', '--json'] }],
  'token revoke': () => [{ words: ['token', 'revoke', evil] }],
  'token rotate': () => [{ words: ['token', 'rotate', evil] }],
  'schedule add': () => [
    { words: ['schedule', 'add', 'a', '--every', '1h', '--message', evil] },
    { words: ['schedule', 'add', evil, '--at', evil, '--message', 'x'] },
  ],
  'schedule list': () => [{ words: ['schedule', 'list'] }, { words: ['schedule', 'list', '--json'] }],
  'schedule show': () => [{ words: ['schedule', 'show', 'a'] }, { words: ['schedule', 'show', evil] }],
  'schedule run': () => [{ words: ['schedule', 'run', evil] }, { words: ['schedule', 'run', 'a'], env: reply() }],
  'schedule pause': () => [{ words: ['schedule', 'pause', evil] }],
  'schedule resume': () => [{ words: ['schedule', 'resume', evil] }],
  'schedule remove': () => [{ words: ['schedule', 'remove', evil] }],
  'home backup': () => [{ words: ['home', 'backup', join(state.at.dir, name)] }],
  'home restore': () => [
    { words: ['home', 'restore', join(state.at.dir, name, 'none')], env: { BRAIDCLAW_HOME: join(state.at.dir, 'restored') } },
  ],
  'home prune': () => [{ words: ['home', 'prune', '--days', evil] }],
  ...controlCases,
  completion: () => [{ words: ['completion', evil] }, { words: ['__complete', 'fish', evil, ''] }],
}

/** Commands that show nothing from outside, however they are driven here. */
export const silent = [
  'budget',
  'onboard',
  'config schema',
  'session count',
  'memory clear',
  'receipt accept',
  'receipt rotate',
  'bridge discord',
  'bridge brain',
  'rebuild',
]

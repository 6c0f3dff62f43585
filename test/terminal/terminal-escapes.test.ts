/** Whatever is called what: no command lets a name, a stored text or an answer drive the terminal or hide from the eye. */

import { afterAll, test as always, beforeAll, describe, expect } from 'bun:test'
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { isRunnable } from '../../src/cli/args/find-command.ts'
import { commands } from '../../src/cli/commands/list.ts'
import { type Nest, nest } from '../support/cli.ts'
import { needs } from '../support/needs.ts'
import { ctrlC, ctrlD } from '../support/talk.ts'
import { alone, call, everyTool, scripted } from '../support/turns.ts'

const possible = needs('bwrap')
const test = always.if(possible)

/** Clears the screen, names the window, reverses what follows, hides a letter: in C0, C1, DEL, bidi and zero-width characters. */
const evil = '\u001b[2J\u001b]0;owned\u0007\u009b31m\u007f\u202egnp.\u2066x\u200e\u200bz\u061c\ufeff'
/** Where control characters are refused. */
const turned = 'a\u202egnp.b'
/** What may be a file's name, a tool's, an agent's. */
const name = `a${evil}b`

/** What no screen may be sent, once our own dimming, our status line, our paste marks, the line editors' movements and the colours of `onboard` are taken out. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const ours = /\u001b\[(?:1|2|22|9|29|3[0-9]|9[0-7])m|\r\u001b\[K|\u001b\[\?2004[hl]|\u001b\[\?25[hl]|\u001b\[\d*(?:;\d*)*[A-HJK]|\r/g
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const raw = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]/

/** The questions of `onboard` have colours. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const colours = /\u001b\[\d{1,2}m/g

const rawIn = (screen: string, more = ours) => raw.exec(screen.replaceAll(ours, '').replaceAll(more, ''))?.[0]

type Case = {
  readonly words: readonly string[]
  readonly type?: readonly (readonly [string, string])[]
  readonly env?: { readonly [name: string]: string }
  /** Written into interact_out meanwhile. */
  readonly says?: string
}

const reply = () => scripted(state.at, [call(name, {}), call('file_read', { path: name }), { text: `said ${evil}`, chunks: 9 }]).env
const asking = () => scripted(state.at, [call('good', { [evil]: evil }), { text: evil }]).env
const state = {} as { at: Nest; receipt: string; run: string; approval: string; changes: string }

const fifos = () => join(state.at.dir, 'fifos')

/** An agent behind the FIFOs answers this line. */
function bridged(kind: string, line: string): Case {
  const words = ['bridge', kind, '--fifo-dir', fifos()]
  return { words, says: line, type: [['202e', ctrlC]] }
}

/** For each command of the program's own table what it is to be driven with. */
const cases: { readonly [command: string]: () => readonly Case[] } = {
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
  ],
  init: () => [{ words: ['init', '--workspace', join(state.at.dir, name)], env: { BRAIDCLAW_HOME: join(state.at.dir, 'fresh') } }],
  onboard: () => [{ words: ['onboard'], type: [['Which model should', '\u0003']] }],
  'config show': () => [{ words: ['config', 'show'] }, { words: ['config', 'show', '--origin', '--json'] }],
  'config validate': () => [{ words: ['config', 'validate'], env: { BRAIDCLAW_HOME: join(state.at.dir, 'broken') } }],
  'config schema': () => [{ words: ['config', 'schema'] }],
  'provider list': () => [{ words: ['provider', 'list'] }, { words: ['provider', 'list', '--json'] }],
  'provider test': () => [
    { words: ['provider', 'test'], env: scripted(state.at, [{ text: evil }]).env },
    { words: ['provider', 'test', evil] },
  ],
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
  'run show': () => [
    { words: ['run', 'show', state.run] },
    { words: ['run', 'show', state.run, '--json'] },
    { words: ['run', 'show', evil] },
  ],
  replay: () => [{ words: ['replay', state.run] }, { words: ['replay', '--all', '--json'] }, { words: ['replay', evil] }],
  rebuild: () => [{ words: ['rebuild', '--check'] }],
  verify: () => [{ words: ['verify', '--threads', `/nowhere/${name}`] }],
  'policy explain': () => [
    { words: ['policy', 'explain', '--', 'cat', name] },
    { words: ['policy', 'explain', '--tool', name] },
    { words: ['policy', 'explain', '--tool', 'time', '--args', evil] },
  ],
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
  doctor: () => [{ words: ['doctor', '--workspace', join(state.at.dir, name)] }, { words: ['doctor', '--json'] }],
  trust: () => [{ words: ['trust', join(state.at.dir, name)] }, { words: ['trust', '--list'] }, { words: ['trust', '--list', '--json'] }],
  completion: () => [{ words: ['completion', evil] }, { words: ['__complete', 'fish', evil, ''] }],
}

/** Commands that show nothing from outside, however they are driven here. */
const silent = [
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

function described(folder: string): void {
  mkdirSync(folder, { recursive: true })
  const text = JSON.stringify({ name: 'good', description: `Says ${evil}`, parameters: { type: 'object', properties: { [evil]: {} } } })
  for (const [file, said] of [
    ['good.sh', text],
    [`${name}.sh`, text.replace('good', 'fine')],
    ['bad.sh', JSON.stringify({ name: evil })],
  ]) {
    writeFileSync(join(folder, file ?? ''), `#!/bin/sh\ncat <<'J'\n${said}\nJ\n`)
    chmodSync(join(folder, file ?? ''), 0o755)
  }
}

const toml = `${everyTool}
[tools]
executables = ["good"]
[providers.models.odd]
kind = "mock"
model = ${JSON.stringify(evil).replace(/[\u007f-\uffff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)}
`

beforeAll(async () => {
  if (!possible) return
  const at = nest()
  state.at = at
  at.config(toml)
  at.file('plain', `inside ${evil}\n`)
  at.file(name, `inside ${evil}\n`)
  described(join(at.home, '.braidclaw/tools'))
  for (const folder of [join(at.dir, 'broken'), join(at.dir, name, '.braidclaw')]) mkdirSync(folder, { recursive: true })
  writeFileSync(join(at.dir, 'broken/config.toml'), `default_provider = "${turned}"\n`)
  writeFileSync(join(at.dir, name, '.braidclaw/config.toml'), '\n')
  mkdirSync(join(at.home, '.braidclaw/agents/default'), { recursive: true })
  writeFileSync(join(at.home, '.braidclaw/agents/default/soul.md'), `You are ${evil}.\n`)
  await at.run(['session', 'append', 'user', evil])
  await at.run(['memory', 'pin', turned])
  await at.run(['agent', '-m', evil], { env: asking(), through: alone })
  await at.run(['agent', '-m', evil], { env: reply() })
  await at.run(['tool', 'run', 'shell', '--json', JSON.stringify({ command: "cat plain > copied; echo '\\u202e'" })])
  const asked = JSON.parse((await at.run(['approvals', 'list', '--json'])).stdout)
  state.changes = asked.find(({ id }: { id: string }) => id.startsWith('changes:')).id
  state.run = JSON.parse((await at.run(['run', 'list', '--json'])).stdout)[0].runId
  state.receipt = JSON.parse((await at.run(['receipt', 'list', '--json'])).stdout)[0].id
  state.approval = asked.find(({ id }: { id: string }) => id !== state.changes).id
}, 30_000)
afterAll(() => state.at?.[Symbol.dispose]())

async function screenOf({ words, type = [], env = {}, says }: Case): Promise<string> {
  const answer = `(until [ -p ${fifos()}/interact_out ]; do sleep 0.05; done; printf '%s\\n' "$SAYS" > ${fifos()}/interact_out) & exec "$@"`
  const through = says === undefined ? [] : ['sh', '-c', answer, 'sh']
  return (await state.at.terminal(words, type, { env: { ...env, ...(says ? { SAYS: says } : {}) }, through })).stdout
}

const routes = () => [...new Set(commands.filter(isRunnable).map(({ name }) => name.split(' ').slice(0, 2).join(' ')))]

test('every command of the program is driven here', () => {
  expect(Object.keys(cases).sort()).toEqual([...routes()].sort())
})

test('the search itself finds each of them, and lets our own marks pass', () => {
  for (const character of evil.replace(/[ -~]/g, '')) expect(rawIn(`a${character}b`)).toBe(character)
  expect(rawIn('\u001b[2mdim\u001b[22m \r\u001b[Kthinking 1 s\n\u001b[3G\ttext\n')).toBeUndefined()
})

describe.each(routes().map((route) => [route]))('%s', (route) => {
  test('on a terminal nothing from outside arrives raw', async () => {
    const screens: string[] = []
    for (const one of cases[route]?.() ?? []) {
      const screen = await screenOf(one)
      const found = rawIn(screen, route === 'onboard' ? colours : ours)
      expect({ words: one.words, raw: found, screen }).toEqual({ words: one.words, raw: undefined, screen })
      screens.push(screen)
    }
    const shown = screens.some((screen) => screen.includes('202e'))
    expect({ shown, screens }).toEqual({ shown: !silent.includes(route), screens })
  }, 30_000)
})

describe('on a pipe', () => {
  test('an answer is byte for byte what the model said', async () => {
    const { env } = scripted(state.at, [{ text: evil, chunks: 9 }])
    for (const words of [
      ['agent', '-m', 'go'],
      ['filter', 'go'],
    ])
      expect((await state.at.run(words, { env })).stdout).toBe(`${evil}\n`)
    expect((await state.at.run(['tool', 'run', 'file_read', '--json', '{"path":"plain"}'])).stdout).toContain(evil)
    expect((await state.at.run(['compose'])).stdout).toContain(evil)
  })

  test('JSON is safe to look at, and equal when it is parsed', async () => {
    const { stdout } = await state.at.run(['agent', '-m', 'go', '--json'], { env: scripted(state.at, [{ text: evil }]).env })
    expect(rawIn(stdout)).toBeUndefined()
    expect(JSON.parse(stdout).result).toBe(evil)
  })

  test('what is listed for people, and whatever goes to stderr, is escaped there too', async () => {
    const { stdout, stderr } = await state.at.run(['agent', '-m', 'go'], { env: reply() })
    expect([stdout, rawIn(stderr), stderr.includes('202e')]).toEqual([`said ${evil}\n`, undefined, true])
    const shown = (await state.at.run(['memory', 'show', 'last'])).stdout
    expect([rawIn(shown), shown.includes('202e')]).toEqual([undefined, true])
  })
})

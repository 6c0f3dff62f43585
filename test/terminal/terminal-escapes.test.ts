/** Whatever is called what: no command lets a name, a stored text or an answer drive the terminal or hide from the eye. */

import { afterAll, test as always, beforeAll, describe, expect } from 'bun:test'
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { isRunnable } from '../../src/cli/args/command.ts'
import { commands } from '../../src/cli/commands/list.ts'
import { nest } from '../support/cli.ts'
import { type Case, evil, state } from '../support/driven-case.ts'
import { asking, cases, fifos, name, reply, silent, turned } from '../support/driven-commands.ts'
import { type EvilControl, evilControl } from '../support/evil-control.ts'
import { needs } from '../support/needs.ts'
import { alone, everyTool, scripted } from '../support/turns.ts'

const possible = needs('bwrap')
const test = always.if(possible)

/** What no screen may be sent, once our own dimming, our status line, our paste marks, the line editors' movements and the colours of `onboard` are taken out. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const ours = /\u001b\[(?:[1-49]|2[2-49]|3[0-9]|9[0-7])m|\u001b\[\?(?:25|1004|2004|2026)[hl]|\u001b\[\d*(?:;\d*)*[A-HJK]|\r/g
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const raw = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]/

/** The questions of `onboard` have colours. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const colours = /\u001b\[\d{1,2}m/g

const rawIn = (screen: string, more = ours) => raw.exec(screen.replaceAll(ours, '').replaceAll(more, ''))?.[0]

const control: { server?: EvilControl } = {}

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
  mkdirSync(join(at.home, '.braidclaw/logs'), { recursive: true })
  writeFileSync(join(at.home, '.braidclaw/logs/service.log'), `info: ${evil}\n`)
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
  control.server = await evilControl(at)
  state.control = control.server.url
}, 120_000)
afterAll(async () => {
  await control.server?.[Symbol.asyncDispose]()
  state.at?.[Symbol.dispose]()
})

async function screenOf({ words, type = [], env = {}, says }: Case): Promise<string> {
  const answer = `(until [ -p ${fifos()}/interact_out ]; do sleep 0.05; done; printf '%s\\n' "$SAYS" > ${fifos()}/interact_out) & exec "$@"`
  const through = says === undefined ? [] : ['sh', '-c', answer, 'sh']
  return (await state.at.terminal(words, type, { env: { ...env, ...(says ? { SAYS: says } : {}) }, through })).raw
}

const routes = () => [...new Set(commands.filter(isRunnable).map(({ name }) => name.split(' ').slice(0, 2).join(' ')))]

/** A command that somebody added has no case yet; it refuses this flag and says which. */
const driven = (route: string): readonly Case[] => cases[route]?.() ?? [{ words: [...route.split(' '), `--${evil}`] }]

test('every command of the program is driven here', () => {
  expect(Object.keys(cases).filter((route) => !routes().includes(route))).toEqual([])
  expect(Object.keys(cases).length).toBeGreaterThanOrEqual(116)
  expect(routes().filter((route) => driven(route).length === 0)).toEqual([])
})

test('the search itself finds each of them, and lets our own marks pass', () => {
  for (const character of evil.replace(/[ -~]/g, '')) expect(rawIn(`a${character}b`)).toBe(character)
  expect(rawIn('\u001b[2mdim\u001b[22m \r\u001b[Kthinking 1 s\n\u001b[3G\ttext\n')).toBeUndefined()
})

describe.each(routes().map((route) => [route]))('%s', (route) => {
  test('on a terminal nothing from outside arrives raw', async () => {
    const screens: string[] = []
    for (const one of driven(route)) {
      const screen = await screenOf(one)
      const found = rawIn(screen, route === 'onboard' ? colours : ours)
      expect({ words: one.words, raw: found, screen }).toEqual({ words: one.words, raw: undefined, screen })
      screens.push(screen)
    }
    const shown = screens.some((screen) => screen.includes('202e'))
    expect({ shown, screens }).toEqual({ shown: !silent.includes(route), screens })
  }, 120_000)
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

#!/usr/bin/env bun
/** Makes the pictures of screens in docs/captures: `scripts/captures.ts [NAME…] [--out FOLDER]`. Each scene is played in tmux with scripted answers of a model. */

import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { until } from '../test/support/until.ts'
import { type Size, terminalSvg } from './terminal-svg.ts'

export const sizes: readonly Size[] = [
  { columns: 80, rows: 24 },
  { columns: 120, rows: 40 },
]

/** Types the keys as tmux names them (a text with a space in it is typed as it is), and waits until the screen holds the text. */
type Step = { readonly keys?: readonly string[]; readonly shows: RegExp; readonly withinMs?: number }

export type Scene = {
  readonly name: string
  readonly words: readonly string[]
  readonly replies?: readonly object[]
  readonly steps: readonly Step[]
}

const call = (name: string, args: object) => ({
  tool_calls: [{ name, arguments: args }],
  usage: { input_tokens: 1_840, output_tokens: 31 },
})
const begun: Step = { shows: /^> ?$|^[>›❯] /m }
const say = (text: string, shows: RegExp): Step => ({ keys: [text, 'Enter'], shows })

const answer = `The project keeps **three** temperatures and prints their mean.

| file | what it holds |
|---|---|
| \`notes.md\` | the readings |
| \`mean.ts\` | the program |

\`\`\`ts
const mean = (all: number[]) => all.reduce((sum, one) => sum + one, 0) / all.length
\`\`\`

1. It reads \`notes.md\`.
2. It prints **18.5**.`

export const scenes: readonly Scene[] = [
  { name: 'help', words: ['--help'], steps: [{ shows: /braidclaw help all/ }] },
  {
    name: 'answer',
    words: ['agent'],
    replies: [call('file_read', { path: 'notes.md' }), { text: answer, chunks: 40, usage: { input_tokens: 2_100, output_tokens: 118 } }],
    steps: [begun, say('What does this project do?', /It prints .*18\.5/)],
  },
  {
    name: 'approval',
    words: ['agent'],
    replies: [call('file_edit', { path: 'mean.ts', old: 'return 0', new: 'throw new Error("no readings")' }), { text: 'Done.' }],
    steps: [begun, say('An empty list should be an error', /\[y\/N/)],
  },
  {
    name: 'steer',
    words: ['agent'],
    replies: [{ text: 'Later.', delay_ms: 600_000 }],
    steps: [begun, say('Summarise the notes', /\b[1-9]\d? ?s\b/), say('in German, please', /in German, please/)],
  },
  { name: 'commands', words: ['agent'], steps: [begun, say('/help', /\/exit +leave/)] },
]

const files = {
  'notes.md': '# Readings\n\n17.5, 18.0, 20.0\n',
  'mean.ts':
    'export function mean(all: readonly number[]): number {\n  if (all.length === 0) return 0\n  return all.reduce((sum, one) => sum + one, 0) / all.length\n}\n',
} as const

const program = join(import.meta.dir, '../bin/braidclaw')

/** Plays a scene and returns the screen at its end, with colours. @throws when a step does not show what it should */
export async function play({ name, words, replies = [{ text: 'Hello.' }], steps }: Scene, { columns, rows }: Size): Promise<string> {
  // A short name, because it stands in the screen and decides where lines break.
  const home = mkdtempSync(join(tmpdir(), 'p-'))
  const project = join(home, 'project')
  mkdirSync(project)
  for (const [path, text] of Object.entries(files)) writeFileSync(join(project, path), text)
  writeFileSync(join(home, 'replies.json'), JSON.stringify({ responses: replies }))
  const variables = {
    HOME: home,
    PATH: process.env.PATH ?? '/usr/bin:/bin',
    LANG: 'C.UTF-8',
    TERM: 'tmux-256color',
    BRAIDCLAW_MOCK_FIXTURE: join(home, 'replies.json'),
  }
  const tmux = (...args: readonly string[]) => Bun.spawnSync(['tmux', '-S', join(home, 'tmux'), ...args]).stdout.toString()
  const screen = () => tmux('capture-pane', '-p')
  try {
    const settings = [
      'set',
      '-g',
      'remain-on-exit',
      'on',
      ';',
      'set',
      '-g',
      'remain-on-exit-format',
      '',
      ';',
      'set',
      '-g',
      'status',
      'off',
      ';',
    ]
    const env = Object.entries(variables).map(([key, value]) => `${key}=${value}`)
    tmux(
      '-f',
      '/dev/null',
      ...settings,
      'new-session',
      '-d',
      '-x',
      `${columns}`,
      '-y',
      `${rows}`,
      '-c',
      project,
      'env',
      '-i',
      ...env,
      program,
      ...words,
    )
    for (const { keys = [], shows, withinMs } of steps) {
      for (const key of keys) tmux('send-keys', ...(key.includes(' ') || key.startsWith('/') ? ['-l', '--'] : []), key)
      await until(() => shows.test(screen()), withinMs).catch(() => {
        throw new Error(`${name} at ${columns}x${rows}: the screen does not show ${shows}:\n${screen()}`)
      })
    }
    await still(screen)
    return tmux('capture-pane', '-p', '-e').replaceAll(home, '~')
  } finally {
    const pid = tmux('display-message', '-p', '#{pane_pid}').trim()
    tmux('kill-server')
    // A program that ends writes into its home, which would come back.
    await until(() => pid === '' || !existsSync(`/proc/${pid}`))
    rmSync(home, { recursive: true, force: true })
  }
}

/** Waits until the screen has stayed the same for 400 ms; what ticks, ticks every second. */
async function still(screen: () => string): Promise<void> {
  let [before, since] = ['', performance.now()]
  await until(() => {
    const now = screen()
    if (now !== before) [before, since] = [now, performance.now()]
    return performance.now() - since > 400
  })
}

export const fileOf = (name: string, { columns, rows }: Size): string => `${name}-${columns}x${rows}.svg`

async function main(): Promise<void> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { out: { type: 'string', default: join(import.meta.dir, '../docs/captures') } },
  })
  mkdirSync(values.out, { recursive: true })
  for (const scene of scenes.filter(({ name }) => positionals.length === 0 || positionals.includes(name)))
    for (const size of sizes) {
      writeFileSync(join(values.out, fileOf(scene.name, size)), terminalSvg(await play(scene, size), size, `A terminal: ${scene.name}`))
      console.log(fileOf(scene.name, size))
    }
}

if (import.meta.main) await main()

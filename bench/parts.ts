/** The parts by themselves, each figure beside what is asked of it: kernel, the kernel's share of a turn, memory, discovery, receipts. */

import { join } from 'node:path'
import { isObject } from '../src/kit/json.ts'

export type Part = {
  readonly what: string
  readonly value: number
  readonly unit: 'M/s' | 'ms' | 'µs' | '/s'
  /** The target; without one the figure is only told. */
  readonly atMost?: number
  readonly atLeast?: number
}

const shareRuns = 21

/** `share` is bench/share.ts, compiled. */
export async function measureParts(share: string): Promise<Part[]> {
  return [
    ...(await kernel()),
    ...(await shares(share)),
    ...(await memory()),
    ...(await discovery()),
    ...(await receipts()),
    ...(await stdio()),
  ]
}

export function isMet({ value, atMost = Number.POSITIVE_INFINITY, atLeast = 0 }: Part): boolean {
  return value <= atMost && value >= atLeast
}

export function partsTable(parts: readonly Part[]): string {
  const rows = parts.map((part) => {
    const { what, value, unit, atMost, atLeast } = part
    const target = atMost !== undefined ? `at most ${shown(atMost)}` : atLeast !== undefined ? `at least ${shown(atLeast)}` : ''
    return `| ${what} | ${shown(value)} ${unit} | ${target} | ${target === '' ? '' : isMet(part) ? 'yes' : '**no**'} |`
  })
  return ['| part | figure | target | met |', '|---|---|---|---|', ...rows].join('\n')
}

function shown(value: number): string {
  return value >= 1000 ? Math.round(value).toLocaleString('en') : String(Math.round(value * 100) / 100)
}

async function kernel(): Promise<Part[]> {
  const { rows } = await figures('kernel')
  if (!Array.isArray(rows)) throw new Error('bench/kernel.ts printed no rows')
  return rows
    .filter(isObject)
    .map(({ name, perSecond, need }) => ({
      what: `kernel, events: ${name}`,
      value: number(perSecond) / 1e6,
      unit: 'M/s',
      ...(number(need) > 0 ? { atLeast: number(need) / 1e6 } : {}),
    }))
}

/** Of fresh processes, since a turn is one. */
async function shares(executable: string): Promise<Part[]> {
  const parts: Part[] = []
  for (const [name, rounds] of [
    ['text', 0],
    ['one tool', 1],
    ['20 tools', 20],
  ] as const) {
    const times: number[] = []
    for (let run = 0; run < shareRuns; run++) times.push(number((await json([executable, String(rounds)])).coldMs))
    const value = times.toSorted((a, b) => a - b)[shareRuns >> 1] ?? Number.NaN
    parts.push({ what: `kernel's share of a cold turn: ${name}`, value, unit: 'ms', ...(rounds === 0 ? { atMost: 1 } : {}) })
  }
  return parts
}

async function memory(): Promise<Part[]> {
  const { rare_ms, mid_ms, common_ms, six_common_ms, substring_ms } = await figures('memory')
  const over = (what: string, ms: unknown, atMost?: number): Part => ({
    what: `memory search over 100,000 messages: ${what}`,
    value: number(ms),
    unit: 'ms',
    ...(atMost === undefined ? {} : { atMost }),
  })
  return [
    over('a rare term', rare_ms, 2),
    over('a mid term', mid_ms, 2),
    over('a very common term', common_ms),
    over('six common words', six_common_ms, 25),
    over('part of a word', substring_ms),
  ]
}

async function discovery(): Promise<Part[]> {
  const { put_ms, build_ms, median_ms } = await figures('discovery')
  return [
    { what: 'discovery of 10,000 items: adding them', value: number(put_ms) + number(build_ms), unit: 'ms' },
    { what: 'discovery of 10,000 items: a search', value: number(median_ms), unit: 'ms', atMost: 30 },
  ]
}

async function receipts(): Promise<Part[]> {
  const { append_us, append_fsync_us, verify_per_s } = await figures('receipts')
  return [
    { what: 'receipts, append without fsync', value: number(append_us), unit: 'µs' },
    { what: 'receipts, append', value: number(append_fsync_us), unit: 'µs' },
    { what: 'receipts, verify', value: number(verify_per_s), unit: '/s', atLeast: 200_000 },
  ]
}

async function stdio(): Promise<Part[]> {
  const { events_per_s, first_event_ms } = await figures('stdio')
  return [
    { what: 'stdio, events of one turn', value: number(events_per_s), unit: '/s', atLeast: 10_000 },
    { what: 'stdio, first event after the start', value: number(first_event_ms), unit: 'ms' },
  ]
}

function figures(name: string): Promise<{ [key: string]: unknown }> {
  return json([process.execPath, '--config=/dev/null', '--no-env-file', join(import.meta.dir, `${name}.ts`), '--json'])
}

async function json(command: readonly string[]): Promise<{ [key: string]: unknown }> {
  const child = Bun.spawn([...command], { stdio: ['ignore', 'pipe', 'inherit'] })
  const [text, code] = await Promise.all([child.stdout.text(), child.exited])
  const said: unknown = code === 0 ? JSON.parse(text) : undefined
  if (!isObject(said))
    throw new Error(`${command.join(' ')} ended with exit code ${code} and printed ${JSON.stringify(text.slice(0, 200))}`)
  return said
}

function number(value: unknown): number {
  return typeof value === 'number' ? value : Number.NaN
}

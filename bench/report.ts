/** What the figures say: each target of ours as a ratio against a floor of the same run, and both as a table. */

import { median, type Timing } from './measure.ts'

/** Wall clock in milliseconds. */
export type Figure = Timing & {
  readonly scenario: string
  readonly program: string
  /** Peak memory in MiB. */
  readonly mib?: number
  /** Size of the first request's body. */
  readonly bytes?: number
}

export type Verdict = {
  readonly what: string
  /**
   * Where it is a ratio: the median of the ratios of each round, since what else the machine does in a round falls on both. `medians` is the
   * ratio of the medians, `minima` that of the minima.
   */
  readonly value: number
  readonly medians?: number
  readonly minima?: number
  /** Absent where nothing is aimed at. */
  readonly limit?: number
  readonly unit: '×' | 'MiB' | 'bytes'
  readonly met?: boolean
}

const RATIOS: readonly { readonly scenario: string; readonly against: string; readonly limit?: number }[] = [
  { scenario: '--version', against: 'hello', limit: 1.5 },
  { scenario: 'text', against: 'store', limit: 1.9 },
  { scenario: 'filter', against: 'store', limit: 2.2 },
  { scenario: 'one-tool', against: 'store', limit: 2.3 },
  { scenario: 'one-tool-key', against: 'store' },
  { scenario: '20-reads', against: 'store', limit: 3 },
  { scenario: 'one-shell', against: 'store', limit: 2.5 },
  { scenario: 'one-shell-thinking', against: 'store', limit: 2.4 },
  { scenario: 'one-change', against: 'store' },
  { scenario: '20-shells', against: 'store', limit: 3.2 },
  { scenario: '4000-deltas', against: 'store', limit: 1.4 },
]
const TEXT_MIB = 60
const FIRST_REQUEST_BYTES = 4400

/** Only the targets for which there are figures. */
export function judge(figures: readonly Figure[]): Verdict[] {
  const of = (scenario: string, program: string): Figure | undefined =>
    figures.find((figure) => figure.scenario === scenario && figure.program === program)
  const ratios = RATIOS.map(({ scenario, against, limit }) => {
    const [ours, floor] = [of(scenario, 'braidclaw'), of(scenario, against)]
    const ratio = (key: 'median' | 'min'): number => (ours?.[key] ?? Number.NaN) / (floor?.[key] ?? Number.NaN)
    const rounds = (ours?.times ?? []).map((time, round) => time / (floor?.times[round] ?? Number.NaN))
    const value = median(rounds)
    return { what: `${scenario} against ${against}`, value, medians: ratio('median'), minima: ratio('min'), limit, unit: '×' as const }
  })
  const text = of('text', 'braidclaw')
  const sizes = [
    { what: 'text, peak memory', value: text?.mib ?? Number.NaN, limit: TEXT_MIB, unit: 'MiB' as const },
    { what: 'text, first request', value: text?.bytes ?? Number.NaN, limit: FIRST_REQUEST_BYTES, unit: 'bytes' as const },
  ]
  const found: readonly Verdict[] = [...ratios, ...sizes]
  return found
    .filter(({ value }) => !Number.isNaN(value))
    .map((one) => (one.limit === undefined ? one : { ...one, met: one.value <= one.limit }))
}

/** Two Markdown tables: targets, then everything measured. */
export function table(figures: readonly Figure[], verdicts: readonly Verdict[]): string {
  const targets = verdicts.map(
    ({ what, value, medians, minima, limit, unit, met }) =>
      `| ${what} | ${[value, medians, minima, limit].map((each) => shown(each, unit)).join(' | ')} | ${met === undefined ? '' : met ? 'yes' : '**no**'} |`,
  )
  const rows = figures.map(
    ({ scenario, program, median, min, mib, bytes }) =>
      `| ${scenario} | ${program} | ${median.toFixed(1)} | ${min.toFixed(1)} | ${mib?.toFixed(0) ?? ''} | ${bytes ?? ''} |`,
  )
  const measured = ['| scenario | program | median ms | min ms | peak MiB | first request, bytes |', '|---|---|---|---|---|---|', ...rows]
  if (targets.length === 0) return measured.join('\n')
  return ['| target | rounds | medians | minima | at most | met |', '|---|---|---|---|---|---|', ...targets, '', ...measured].join('\n')
}

function shown(value: number | undefined, unit: Verdict['unit']): string {
  if (value === undefined) return ''
  return unit === '×' ? `${value.toFixed(2)} ×` : `${Math.round(value)} ${unit}`
}

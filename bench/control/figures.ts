/** Figures of the control plane's benchmark, their limits and how they are shown. */

import type { Server } from '../http/start.ts'

export type Figure = {
  readonly what: string
  readonly value: number
  readonly unit: string
  readonly most?: number
  readonly least?: number
}

export type Bench = {
  /** A folder for databases. */
  readonly scratch: string
  /** A new control plane with an empty database. */
  readonly ours: () => Promise<Server>
  readonly floor: () => Promise<Server>
  /** A daemon on this PostgreSQL database. */
  readonly onPostgres: (url: string) => Promise<Server>
}

export const operatorToken = 'cpo_operator-token-of-the-bench-0123456789'
/** The one key that the floor knows. */
export const floorKey = 'bench-key'

export function isMet({ value, most, least }: Figure): boolean {
  return value <= (most ?? Number.POSITIVE_INFINITY) && value >= (least ?? Number.NEGATIVE_INFINITY)
}

function limitOf({ most, least, unit }: Figure): string {
  if (most !== undefined) return `at most ${most} ${unit}`
  return least === undefined ? '' : `at least ${least} ${unit}`
}

const isLimited = ({ most, least }: Figure) => most !== undefined || least !== undefined
const shown = ({ value, unit }: Figure) => `${value.toFixed(value < 10 ? 2 : value < 1_000 ? 1 : 0)} ${unit}`
export const line = (figure: Figure) => `${figure.what}  ${shown(figure)}  ${limitOf(figure)}${isMet(figure) ? '' : '  MISSED'}`

export function table(figures: readonly Figure[]): string {
  const rows = figures.map(
    (figure) =>
      `| ${figure.what} | ${shown(figure)} | ${limitOf(figure)} | ${isLimited(figure) ? (isMet(figure) ? 'yes' : '**no**') : ''} |`,
  )
  return ['| what | measured | limit | met |', '|---|--:|---|---|', ...rows].join('\n')
}

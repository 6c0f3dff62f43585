/** Draws one value for each day as bars, in the colours of the page; a table has the same numbers for those who cannot see it. */

import { useEffect, useRef } from 'preact/hooks'
import uPlot from 'uplot'

/** `day`: midnight in UTC, in milliseconds since 1970. */
export type DayValue = { readonly day: number; readonly value: number }

type ChartProps = {
  readonly values: readonly DayValue[]
  readonly label: string
  readonly unit: 'cost' | 'tokens'
  /** A line across all days. */
  readonly limit?: number
  /** A pale bar behind that of its day. */
  readonly forecast?: DayValue
}

const height = 220

export function DayChart({ values, label, unit, limit, forecast }: ChartProps) {
  const place = useRef<HTMLDivElement>(null)
  const plot = useRef<uPlot | undefined>(undefined)
  const data = (): uPlot.AlignedData => [
    values.map(({ day }) => day / 1000),
    values.map(({ day }) => (day === forecast?.day ? forecast.value : null)),
    values.map(({ value }) => value),
    values.map(() => limit ?? null),
  ]
  useEffect(() => {
    const at = place.current
    if (!at) return
    const chart = new uPlot(optionsFor(unit, at.clientWidth), data(), at)
    plot.current = chart
    const sized = new ResizeObserver(() => chart.setSize({ width: at.clientWidth, height }))
    sized.observe(at)
    // The colours are read from the page again when it turns dark or light.
    const dark = matchMedia('(prefers-color-scheme: dark)')
    const redraw = () => chart.redraw(false, true)
    dark.addEventListener('change', redraw)
    return () => {
      dark.removeEventListener('change', redraw)
      sized.disconnect()
      chart.destroy()
    }
  }, [])
  useEffect(() => plot.current?.setData(data()), [values, limit, forecast?.value])
  return <div ref={place} class="chart" role="img" aria-label={label} />
}

function optionsFor(unit: ChartProps['unit'], width: number): uPlot.Options {
  const axis: uPlot.Axis = { stroke: colour('--quiet'), grid: { stroke: colour('--line'), width: 1 }, ticks: { show: false } }
  const shown = (value: number) =>
    unit === 'cost' ? `$${value.toLocaleString(undefined, { minimumFractionDigits: 2, maximumFractionDigits: 4 })}` : short(value)
  const bars = uPlot.paths.bars?.({ size: [0.7, 40] })
  const bar: uPlot.Series = { width: 0, points: { show: false }, ...(bars ? { paths: bars } : {}) }
  return {
    width,
    height,
    legend: { show: false },
    cursor: { show: false },
    tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), 'Etc/UTC'),
    scales: {
      x: { range: (_, low, high) => [low - 43_200, high + 43_200] },
      y: { range: (_, __, high) => [0, high > 0 ? high * 1.1 : 1] },
    },
    axes: [
      { ...axis, grid: { show: false }, size: 30, space: 70, values: (_, at) => at.map(dayName) },
      { ...axis, size: 70, values: (_, at) => at.map(shown) },
    ],
    series: [
      {},
      { ...bar, fill: colour('--line'), stroke: colour('--line') },
      { ...bar, fill: colour('--accent'), stroke: colour('--accent') },
      { stroke: colour('--bad'), width: 2, dash: [6, 4], points: { show: false } },
    ],
  }
}

function colour(name: string): () => string {
  return () => getComputedStyle(document.documentElement).getPropertyValue(name)
}

function dayName(seconds: number): string {
  const date = new Date(seconds * 1000)
  return date.getUTCHours() === 0 ? date.toLocaleDateString(undefined, { day: 'numeric', month: 'short', timeZone: 'UTC' }) : ''
}

function short(value: number): string {
  return value.toLocaleString(undefined, { notation: 'compact' })
}

/** Writes metrics in the text format of Prometheus, version 0.0.4 (https://prometheus.io/docs/instrumenting/exposition_formats/). */

export type Labels = { readonly [name: string]: string }

/** One value of a metric; a histogram has its upper bounds, in order, and how many values were at most that. */
export type Sample =
  | { readonly labels?: Labels; readonly value: number }
  | {
      readonly labels?: Labels
      readonly buckets: readonly (readonly [bound: number, count: number])[]
      readonly sum: number
      readonly count: number
    }

export type Metric = {
  readonly name: string
  readonly type: 'counter' | 'gauge' | 'histogram'
  readonly help: string
  readonly samples: readonly Sample[]
}

export const prometheusType = 'text/plain; version=0.0.4; charset=utf-8'

export function prometheusText(metrics: readonly Metric[]): string {
  return metrics
    .map(({ name, type, help, samples }) => {
      const lines = samples.flatMap((sample) => linesOf(name, sample))
      return `# HELP ${name} ${help.replaceAll('\\', '\\\\').replaceAll('\n', '\\n')}\n# TYPE ${name} ${type}\n${lines.join('')}`
    })
    .join('')
}

function linesOf(name: string, sample: Sample): string[] {
  const labels = sample.labels ?? {}
  if ('value' in sample) return [line(name, labels, sample.value)]
  const { buckets, sum, count } = sample
  return [
    ...buckets.map(([bound, below]) => line(`${name}_bucket`, { ...labels, le: String(bound) }, below)),
    line(`${name}_bucket`, { ...labels, le: '+Inf' }, count),
    line(`${name}_sum`, labels, sum),
    line(`${name}_count`, labels, count),
  ]
}

function line(name: string, labels: Labels, value: number): string {
  const pairs = Object.entries(labels).map(([key, text]) => `${key}="${escaped(text)}"`)
  return `${name}${pairs.length > 0 ? `{${pairs.join()}}` : ''} ${Number.isFinite(value) ? value : 'NaN'}\n`
}

function escaped(text: string): string {
  return text.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n')
}

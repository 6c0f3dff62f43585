/** Checks for `doctor` that traces arrive where the environment sends them. */

import type { CliSetup } from '../../../channels/terminal/context.ts'
import { tryCollector } from '../../../host/events/telemetry/traces-address.ts'
import type { Finding } from './doctor-finding.ts'

export async function traceFindings({ context: { env } }: CliSetup): Promise<Finding[]> {
  const found = await tryCollector(env)
  if (!found) return []
  const { url, problem } = found
  if (problem === undefined) return [{ what: 'traces', state: 'ok', says: `a collector answers at ${url}` }]
  return [
    {
      what: 'traces',
      state: 'bad',
      says: `no trace arrives: ${problem}`,
      remedy: ['set OTEL_EXPORTER_OTLP_ENDPOINT to the HTTP address of your collector, such as http://127.0.0.1:4318, or unset it'],
    },
  ]
}

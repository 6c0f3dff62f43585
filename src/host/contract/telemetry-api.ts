/** Defines what a server tells about itself. */

import type { Metric } from '../../http/prometheus.ts'

export type Telemetry = {
  metrics(): readonly Metric[]
  /** Sends the last traces. */
  close(): Promise<void>
}

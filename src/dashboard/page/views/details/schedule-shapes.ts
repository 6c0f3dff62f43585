/** What the routes about schedules answer, as far as the page reads it. Times are ISO 8601 in UTC. */

export type ScheduledRun = {
  readonly due: string
  readonly started: string
  readonly state: 'running' | 'good' | 'bad' | 'interrupted' | 'missed' | 'skipped'
  readonly started_by: 'timer' | 'hand'
  readonly passed_over: number
  readonly ended: string | null
  readonly ending: string | null
  readonly message: string | null
  readonly check: string | null
  readonly run_id: string | null
  readonly conversation_id: string | null
  readonly tokens: number | null
  readonly cost_micros: number | null
  readonly sent: string | null
}

export type Schedule = {
  readonly id: string
  readonly name: string
  readonly state: 'active' | 'paused' | 'done'
  readonly why: string | null
  readonly when: string
  readonly zone: string
  readonly next: readonly string[]
  readonly message: string
  readonly channel: string | null
  readonly to: string | null
  readonly check: string | null
  readonly failures: number
  readonly last: ScheduledRun | null
}

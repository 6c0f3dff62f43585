/** Keeps what processes of this home learnt of the windows of models, so that the next process need not learn it again. */

import type { Clock } from '../runtime/port.ts'
import type { Store } from './store.ts'

/** One model at one address; `provider` is its name in the configuration. */
export type ModelKey = { readonly provider: string; readonly address: string; readonly model: string }

/**
 * `server`: the server answered a question for it. `named`: it is in the words of a refusal. `inferred`: a request that was refused was
 * longer. `unknown`: the server was asked and does not tell. `basis`: the window that the configuration or the table named then; 0: none.
 */
export type LearntWindow = {
  readonly tokens: number
  readonly source: 'server' | 'named' | 'inferred' | 'unknown'
  readonly basis: number
}

/** `factor`: by how much the tokens of the model exceed our estimate. */
export type KnownModel = { readonly factor: number; readonly window?: LearntWindow }

export type WindowTable = {
  get(key: ModelKey): KnownModel | undefined
  /** Call it inside a transaction. */
  put(key: ModelKey, known: Partial<KnownModel>): void
}

type Row = { readonly factor: number; readonly at: number } & { readonly [Name in keyof LearntWindow]: LearntWindow[Name] | null }

/** A window is believed for a week: servers are updated and started with other settings. */
const believedMs = 7 * 86_400_000

export function createWindowTable({ sql }: Store, now: Clock): WindowTable {
  return {
    get({ provider, address, model }) {
      const row = sql<Row, [string, string, string]>(
        'SELECT factor, tokens, source, basis, at FROM model_windows WHERE provider = ? AND address = ? AND model = ?',
      ).get(provider, address, model)
      if (row === null) return undefined
      const { factor, tokens, source, basis, at } = row
      if (tokens === null || source === null || Math.abs(now() - at) > believedMs) return { factor }
      return { factor, window: { tokens, source, basis: basis ?? 0 } }
    },
    put({ provider, address, model }, { factor, window }) {
      const add = 'INSERT INTO model_windows(provider, address, model) VALUES (?, ?, ?) ON CONFLICT DO NOTHING'
      sql<never, [string, string, string]>(add).run(provider, address, model)
      const at = 'WHERE provider = ? AND address = ? AND model = ?'
      if (factor !== undefined)
        sql<never, [number, string, string, string]>(`UPDATE model_windows SET factor = ? ${at}`).run(factor, provider, address, model)
      if (window === undefined) return
      const { tokens, source, basis } = window
      sql<never, [number, string, number, number, string, string, string]>(
        `UPDATE model_windows SET tokens = ?, source = ?, basis = ?, at = ? ${at}`,
      ).run(tokens, source, basis, now(), provider, address, model)
    },
  }
}

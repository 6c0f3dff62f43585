/** Keeps what processes of this home learnt of the windows of models, so that the next process need not learn it again. */

import type { Clock } from '../../runtime/port.ts'
import type { Store } from '../store.ts'

/** One model at one address; `provider` is its name in the configuration. */
export type ModelKey = { readonly provider: string; readonly address: string; readonly model: string }

/**
 * `server`: the server was asked. `named`: it is in the words of a refusal. `inferred`: a request that was refused was longer. `unknown`:
 * the server was asked and does not tell. `basis`: the window that the configuration or the table of models named then; 0: none.
 */
export type LearntWindow = { readonly tokens: number; readonly source: 'server' | 'named' | 'inferred' | 'unknown'; readonly basis: number }

/** `factor`: by how much the tokens of the model exceed our estimate. */
export type KnownModel = { readonly factor: number; readonly window?: LearntWindow }

export type WindowTable = ReturnType<typeof createWindowTable>

type WindowRow = { readonly [Name in keyof LearntWindow]: LearntWindow[Name] | null } & { readonly factor: number; readonly at: number }

/** A window is believed for a week: servers are updated and started with other settings. */
const believedMs = 7 * 86_400_000

export function createWindowTable({ sql, run, write }: Store, now: Clock) {
  return {
    get({ provider, address, model }: ModelKey): KnownModel | undefined {
      const rows = sql<WindowRow, string[]>('SELECT * FROM model_windows WHERE provider = ? AND address = ? AND model = ?')
      const { factor = 0, tokens, source, basis, at = 0 } = rows.get(provider, address, model) ?? {}
      const isBelieved = typeof tokens === 'number' && source && Math.abs(now() - at) < believedMs
      return factor > 0 ? { factor, ...(isBelieved ? { window: { tokens, source, basis: basis ?? 0 } } : {}) } : undefined
    },
    /** Leaves what is absent as it is. */
    put(
      { provider, address, model }: ModelKey,
      { factor = null, window }: { readonly factor?: number | null; readonly window?: LearntWindow },
    ) {
      const { tokens = null, source = null, basis = null } = window ?? {}
      const put = `INSERT INTO model_windows VALUES (?1, ?2, ?3, coalesce(?4, 1), ?5, ?6, ?7, ?8) ON CONFLICT DO UPDATE
        SET factor = coalesce(?4, factor), tokens = coalesce(?5, tokens), source = coalesce(?6, source), basis = coalesce(?7, basis),
        at = iif(?5 IS NULL, at, ?8)`
      write(() => run(put, provider, address, model, factor, tokens, source, basis, now()), 'briefly')
    },
  }
}

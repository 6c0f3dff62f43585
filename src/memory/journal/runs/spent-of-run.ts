/** Defines in SQL what the model calls of a run used, from its journal; the run's row keeps it from its end on. */

/** The fields of one element, in this order. Counts of tokens and calls, and millionths of a US dollar. */
export const spentFields = [
  'day',
  'provider',
  'model',
  'calls',
  'input',
  'output',
  'cached',
  'micros',
  'unpriced',
  'estimated',
  'lost',
] as const

const day = `coalesce(strftime('%Y-%m-%d', at / 1000, 'unixepoch'), '')`
const total = (value: string) => `CAST(coalesce(sum(${value}), 0) AS INTEGER)`
const usage = (name: string) => `body ->> '$.usage.${name}'`

/** A failed call that may have been billed, or a call that was under way when its process ended. */
const lost = `(type = 'model.fail' AND body ->> '$.unbilled' IS NULL
  AND body ->> '$.code' NOT IN ('auth', 'rate_limit', 'bad_request', 'context_length', 'budget')
  OR type = 'interrupted' AND body ->> '$.thinking')`

/** What was reserved for a call that was never settled counts in its place. */
const reserved = `(SELECT count(*) FROM spend WHERE kind = 'unsettled' AND spend.run_id = runs.run_id)
  + (SELECT count(*) FROM budget_reservations WHERE payer ->> '$.runId' = runs.run_id)`

/**
 * A JSON array with an element for each day and model of the row of `runs` around it. `unpriced` counts calls whose price is not known,
 * `estimated` those whose tokens the provider did not count, `lost` those of which nothing is known.
 */
export const spentOfRun = `(SELECT json_group_array(json_array(${spentFields.join(', ')})) FROM (
  SELECT ${day} AS day, coalesce(body ->> '$.provider', runs.provider) AS provider, coalesce(body ->> '$.model', runs.model) AS model,
    count(*) AS calls, ${total(usage('inputTokens'))} AS input, ${total(usage('outputTokens'))} AS output,
    ${total(usage('cachedInputTokens'))} AS cached, ${total(usage('costMicros'))} AS micros,
    ${total(`${usage('costMicros')} IS NULL AND ${usage('inputTokens')} + ${usage('outputTokens')} > 0`)} AS unpriced,
    ${total(`coalesce(${usage('estimated')}, 0)`)} AS estimated, 0 AS lost
  FROM journal WHERE journal.run_id = runs.run_id AND type = 'model.done' AND json_valid(body) GROUP BY 1, 2, 3
  UNION ALL
  SELECT coalesce(strftime('%Y-%m-%d', max(at) / 1000, 'unixepoch'), ''), runs.provider, runs.model, 0, 0, 0, 0, 0, 0, 0, count(*) - (${reserved})
  FROM journal WHERE journal.run_id = runs.run_id AND type IN ('model.fail', 'interrupted') AND json_valid(body) AND ${lost}
  HAVING count(*) > (${reserved})))`

/** Defines the settings of [changes]: how long the change sets of commands and file tools can be shown and undone. */

import type { Rows } from '../../../kit/settings.ts'

export const changeRows = {
  keep_sets: {
    type: 'whole',
    min: 0,
    max: 100_000,
    unit: 'change sets',
    default: 200,
    about:
      'How many change sets can be shown and undone; the oldest beyond that are forgotten. 0 keeps none. Those in the copies of wiggum runs are counted apart.',
  },
  keep_mb: { type: 'whole', min: 0, max: 1_000_000, unit: 'MB', default: 1_000, about: 'How much disk their originals may take.' },
  keep_days: {
    type: 'whole',
    min: 0,
    max: 36_500,
    unit: 'days',
    default: 30,
    about: 'How old a change set may become. A change set that waits for a decision is kept until it expires.',
  },
} as const satisfies Rows

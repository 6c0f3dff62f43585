/** What a run that is to end must not begin any more: whoever stops it blocks all of these. */

export const beginnings = [{ type: 'think' }, { type: 'judge' }, { type: 'act' }, { type: 'check' }, { type: 'gate.open' }] as const

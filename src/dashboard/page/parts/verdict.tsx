/** Shows what the gate says of a call, in words and in colour. */

import { Tag } from './small.tsx'

const words = { allow: 'runs', ask: 'asks', deny: 'refused' } as const
const kinds = { allow: 'good', ask: 'warn', deny: 'bad' } as const

export function VerdictTag({ of }: { readonly of: keyof typeof words }) {
  return <Tag kind={kinds[of]}>{words[of]}</Tag>
}

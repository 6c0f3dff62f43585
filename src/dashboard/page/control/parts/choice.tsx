/** A filter with a few values; a value that is not known any more stays visible. */

import { wordsOf } from './bits.tsx'

type Props = {
  readonly name: string
  readonly of: readonly string[]
  readonly value: string | undefined
  readonly set: (value: string) => void
}

export function Choice({ name, of, value = '', set }: Props) {
  const known = value === '' || of.includes(value) ? of : [...of, value]
  return (
    <select aria-label={name} value={value} onChange={(event) => set(event.currentTarget.value)}>
      <option value="">Any {name.toLowerCase()}</option>
      {known.map((each) => (
        <option key={each} value={each}>
          {wordsOf(each)}
        </option>
      ))}
    </select>
  )
}

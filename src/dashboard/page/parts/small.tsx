/** Small pieces that every page uses. */

import { type ComponentChildren, type ComponentProps, Fragment } from 'preact'

type Kind = 'good' | 'bad' | 'warn' | ''

export function Tag({ kind = '', children }: { readonly kind?: Kind; readonly children: ComponentChildren }) {
  return <span class={`tag ${kind}`}>{children}</span>
}

/** Milliseconds since 1970, in the reader's own time zone; today's times have no date. */
export function Time({ at }: { readonly at: number }) {
  const date = new Date(at)
  const whole = date.toLocaleString(undefined, { dateStyle: 'medium', timeStyle: 'medium' })
  const isToday = date.toDateString() === new Date().toDateString()
  return (
    <time dateTime={date.toISOString()} title={whole}>
      {isToday ? date.toLocaleTimeString(undefined, { timeStyle: 'medium' }) : whole}
    </time>
  )
}

type Fact = readonly [name: string, value: ComponentChildren]

/** Shows names with their values; a row that is `false` is left out. */
export function Facts({ of }: { readonly of: readonly (Fact | false)[] }) {
  return (
    <dl class="facts">
      {of.map(
        (fact) =>
          fact && (
            <Fragment key={fact[0]}>
              <dt>{fact[0]}</dt>
              <dd>{fact[1]}</dd>
            </Fragment>
          ),
      )}
    </dl>
  )
}

export function Empty({ children }: { readonly children: ComponentChildren }) {
  return <p class="quiet">{children}</p>
}

type PartProps = {
  readonly id: string
  readonly title: string
  /** Stands at the other end of the line of the heading. */
  readonly beside?: ComponentChildren
  readonly children: ComponentChildren
}

/** Shows a part of the page under its heading. */
export function Part({ id, title, beside, children }: PartProps) {
  const heading = <h2 id={id}>{title}</h2>
  return (
    <section aria-labelledby={id}>
      {beside === undefined ? (
        heading
      ) : (
        <div class="row spread">
          {heading}
          {beside}
        </div>
      )}
      {children}
    </section>
  )
}

/** The words that a field with this list proposes. */
export function Proposals({ id, of }: { readonly id: string; readonly of: readonly string[] }) {
  return (
    <datalist id={id}>
      {of.map((word) => (
        <option key={word} value={word} />
      ))}
    </datalist>
  )
}

/** The head of a table; the cells below a number are numbers too. */
export function Columns({ of }: { readonly of: readonly (string | { readonly number: string })[] }) {
  return (
    <thead>
      <tr>
        {of.map((column) => {
          const [name, kind] = typeof column === 'string' ? [column, undefined] : [column.number, 'number']
          return (
            <th key={name} scope="col" class={kind}>
              {name}
            </th>
          )
        })}
      </tr>
    </thead>
  )
}

type ButtonProps = {
  readonly word: ComponentChildren
  /** Continues the word for those who hear the page, such as " of anna". */
  readonly more?: string
  readonly on: () => unknown
  readonly kind?: 'main' | 'small' | 'stop' | 'link'
}

/** Shows a button that runs an action. */
export function Button({ word, more, on, kind }: ButtonProps) {
  return (
    <button type="button" class={kind} onClick={() => void on()}>
      {word}
      {more !== undefined && <span class="hidden">{more}</span>}
    </button>
  )
}

/** Shows the button that sends a form. */
export function Submit({ busy = false, children }: { readonly busy?: boolean; readonly children: ComponentChildren }) {
  return (
    <button type="submit" class="main" disabled={busy}>
      {children}
    </button>
  )
}

type SelectProps = Pick<ComponentProps<'select'>, 'id' | 'name' | 'value' | 'aria-label' | 'aria-describedby'> & {
  /** The values, each with its words where these differ. */
  readonly of: readonly (string | readonly [value: string, words: string])[]
  /** The value that a form begins with; absent: the first one. */
  readonly first?: string
  readonly set?: (value: string) => void
}

/** Chooses one of some values. */
export function Select({ of, first, set, ...select }: SelectProps) {
  const options = of.map((each) => (typeof each === 'string' ? ([each, each] as const) : each))
  return (
    <select {...select} onChange={set && ((event) => set(event.currentTarget.value))}>
      {options.map(([value, words]) => (
        <option key={value} value={value} selected={first === undefined ? undefined : value === first}>
          {words}
        </option>
      ))}
    </select>
  )
}

/** A part of the page that scrolls by itself, so the keyboard must reach it. It is a group, because a page may hold several of one name. */
export function Scroll({ label, children }: { readonly label: string; readonly children: ComponentChildren }) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex lint/a11y/useSemanticElements: see above; it holds no fields.
    <div role="group" tabIndex={0} aria-label={label}>
      {children}
    </div>
  )
}

type TableProps = ComponentProps<typeof Scroll> & { readonly columns: ComponentProps<typeof Columns>['of'] }

export function Table({ label, columns, children }: TableProps) {
  return (
    <Scroll label={label}>
      <table>
        <Columns of={columns} />
        <tbody>{children}</tbody>
      </table>
    </Scroll>
  )
}

export function Block({ text, label }: { readonly text: string; readonly label: string }) {
  return (
    <Scroll label={label}>
      <pre>{text}</pre>
    </Scroll>
  )
}

/** Shows a unified diff; added and removed lines also begin with + and -, so colour is not needed to read it. */
export function Diff({ text }: { readonly text: string }) {
  return (
    <Scroll label="Difference">
      <pre class="diff">
        {text
          .replace(/\n$/, '')
          .split('\n')
          .map((line, at) => (
            <span key={at} class={kindOf(line)}>
              {line || ' '}
            </span>
          ))}
      </pre>
    </Scroll>
  )
}

function kindOf(line: string): string {
  if (line.startsWith('+++') || line.startsWith('---') || line.startsWith('diff ') || line.startsWith('@@')) return 'at'
  return line.startsWith('+') ? 'add' : line.startsWith('-') ? 'remove' : ''
}

export function money(micros: number | undefined): string {
  return micros === undefined ? 'price unknown' : `$${(micros / 1_000_000).toFixed(4)}`
}

export function riskKind(risk: string): Kind {
  return risk === 'high' ? 'bad' : risk === 'medium' ? 'warn' : 'good'
}

const verdictWords = { allow: 'runs', ask: 'asks', deny: 'refused' } as const
const verdictKinds = { allow: 'good', ask: 'warn', deny: 'bad' } as const

/** Shows what the gate says of a call, in words and in colour. */
export function VerdictTag({ of }: { readonly of: keyof typeof verdictWords }) {
  return <Tag kind={verdictKinds[of]}>{verdictWords[of]}</Tag>
}

/** Says what went wrong. */
export function Problem({ children }: { readonly children: ComponentChildren }) {
  return (
    <p class="card bad" role="alert">
      {children}
    </p>
  )
}

/** Shows one number with its name. */
export function Tile({ name, value }: { readonly name: string; readonly value: string }) {
  return (
    <div class="tile">
      <span class="quiet small">{name}</span>
      <b>{value}</b>
    </div>
  )
}

/** Spells the names of a record's own fields as the gateway's JSON does: `conversationId` becomes `conversation_id`. */

type Spelled<Name> = Name extends `${infer Head}${infer Tail}`
  ? `${Head extends Lowercase<Head> ? Head : `_${Lowercase<Head>}`}${Spelled<Tail>}`
  : Name

export type Snake<T> = { -readonly [Name in keyof T as Spelled<Name>]: T[Name] }

/** Leaves the values alone: what a call received or a tool returned keeps its own names. */
export function snake<T extends object>(record: T): Snake<T> {
  return Object.fromEntries(
    Object.entries(record).map(([name, value]) => [name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`), value]),
  ) as Snake<T>
}

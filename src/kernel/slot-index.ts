/** Indexes thread slots by the events in their bids, by type and then by id, so that bids for other ids of a type cost nothing. */

/** The type and id that a request or a pattern names. A key without an id stands for the whole type. */
export type Key = { readonly type: string; readonly id?: string }

export type SlotIndex<S> = {
  /** Adds a slot under a key; adding it again has no effect. */
  add(key: Key, slot: S): void
  /** Returns the slots under the event's type alone and under its id, in program order. Some of them may no longer name the event. */
  find(event: Key): readonly S[] | undefined
  /** Removes the slots that `find` returns and that no longer name the event. */
  sweep(event: Key): void
  /** Removes and returns every slot under exactly this key. */
  take(key: Key): readonly S[]
}

type Placed = { readonly place: number }

/** When the number of ids reaches `roomFor`, the index drops the ids that no slot names any more. */
type Topic<S> = { readonly all: S[]; readonly byId: Map<string, S[]>; roomFor: number }

/** How many useless lookups or unused ids the index tolerates before a cleanup is worth its cost. */
export const PATIENCE = 16

/** `names` tells whether the slot still belongs under the key; the index never removes a slot that does. */
export function createSlotIndex<S extends Placed>(names: (slot: S, key: Key) => boolean): SlotIndex<S> {
  const topics = new Map<string, Topic<S>>()

  function add(key: Key, slot: S): void {
    const topic = topicOf(key.type)
    insertInOrder(key.id === undefined ? topic.all : underId(topic, key.type, key.id), slot)
  }

  function topicOf(type: string): Topic<S> {
    const known = topics.get(type)
    if (known !== undefined) return known
    const fresh: Topic<S> = { all: [], byId: new Map(), roomFor: PATIENCE }
    topics.set(type, fresh)
    return fresh
  }

  function underId(topic: Topic<S>, type: string, id: string): S[] {
    const known = topic.byId.get(id)
    if (known !== undefined) return known
    if (topic.byId.size >= topic.roomFor) dropUnused(topic, type)
    const fresh: S[] = []
    topic.byId.set(id, fresh)
    return fresh
  }

  // The limit doubles with the number of ids in use, so each new id pays for only a few old ones.
  function dropUnused(topic: Topic<S>, type: string): void {
    for (const [id, slots] of topic.byId) keepThose(slots, (slot) => names(slot, { type, id }))
    for (const [id, slots] of topic.byId) if (slots.length === 0) topic.byId.delete(id)
    topic.roomFor = 2 * topic.byId.size + PATIENCE
  }

  function find({ type, id }: Key): readonly S[] | undefined {
    const topic = topics.get(type)
    if (topic === undefined) return undefined
    const own = id === undefined ? undefined : topic.byId.get(id)
    if (own === undefined || own.length === 0) return topic.all
    return topic.all.length === 0 ? own : merged(topic.all, own)
  }

  function sweep({ type, id }: Key): void {
    const topic = topics.get(type)
    if (topic === undefined) return
    keepThose(topic.all, (slot) => names(slot, { type }))
    if (id !== undefined) keepThose(topic.byId.get(id) ?? [], (slot) => names(slot, { type, id }))
  }

  function take({ type, id }: Key): readonly S[] {
    const topic = topics.get(type)
    if (topic === undefined) return []
    if (id === undefined) return topic.all.splice(0)
    const slots = topic.byId.get(id) ?? []
    topic.byId.delete(id)
    return slots
  }

  return { add, find, sweep, take }
}

/** Inserts the slot at its position in program order, once. */
export function insertInOrder<S extends Placed>(list: S[], slot: S): void {
  let low = 0
  let high = list.length
  while (low < high) {
    const middle = (low + high) >>> 1
    const other = list[middle]
    if (other === slot) return
    if (other !== undefined && other.place < slot.place) low = middle + 1
    else high = middle
  }
  if (low === list.length) list.push(slot)
  else list.splice(low, 0, slot)
}

/** Removes the slots that fail `keep`, in place; the others keep their order. */
export function keepThose<S>(list: S[], keep: (slot: S) => boolean): void {
  let count = 0
  for (const slot of list) if (keep(slot)) list[count++] = slot
  list.length = count
}

/** Merges both lists in program order; a slot that is in both appears once. */
function merged<S extends Placed>(left: readonly S[], right: readonly S[]): S[] {
  const both: S[] = []
  let at = 0
  for (const slot of left) {
    for (let other = right[at]; other !== undefined && other.place <= slot.place; other = right[++at]) if (other !== slot) both.push(other)
    both.push(slot)
  }
  return both.concat(right.slice(at))
}

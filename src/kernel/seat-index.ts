/** Seats by the events that their bids name: by type, and within a type by id, so that bids for other ids of a type cost nothing. */

/** What a request or a pattern names. A key without an id stands for the whole type. */
export type Key = { readonly type: string; readonly id?: string }

export type SeatIndex<S> = {
  /** Enters a seat under a key, once. */
  add(key: Key, seat: S): void
  /** The seats under the event's type alone and under its own id, in order of place. Some may no longer name it. */
  find(event: Key): readonly S[] | undefined
  /** Forgets the seats that `find` gives and that no longer name the event. */
  sweep(event: Key): void
  /** Takes out every seat under exactly this key. */
  take(key: Key): readonly S[]
}

type Placed = { readonly place: number }

/** `roomFor` is the number of ids at which those that nobody names any more are dropped. */
type Topic<S> = { readonly all: S[]; readonly byId: Map<string, S[]>; roomFor: number }

/** So many seats are looked at in vain, or ids kept in vain, before it is worth while to forget them. */
export const PATIENCE = 16

/** `names` tells whether the seat still belongs under the key; one that does is never forgotten. */
export function createSeatIndex<S extends Placed>(names: (seat: S, key: Key) => boolean): SeatIndex<S> {
  const topics = new Map<string, Topic<S>>()

  function add(key: Key, seat: S): void {
    const topic = topicOf(key.type)
    enlist(key.id === undefined ? topic.all : underId(topic, key.type, key.id), seat)
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

  // The room doubles with what is in use, so that each new id pays for a few old ones at most.
  function dropUnused(topic: Topic<S>, type: string): void {
    for (const [id, seats] of topic.byId) keepThose(seats, (seat) => names(seat, { type, id }))
    for (const [id, seats] of topic.byId) if (seats.length === 0) topic.byId.delete(id)
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
    keepThose(topic.all, (seat) => names(seat, { type }))
    if (id !== undefined) keepThose(topic.byId.get(id) ?? [], (seat) => names(seat, { type, id }))
  }

  function take({ type, id }: Key): readonly S[] {
    const topic = topics.get(type)
    if (topic === undefined) return []
    if (id === undefined) return topic.all.splice(0)
    const taken = topic.byId.get(id) ?? []
    topic.byId.delete(id)
    return taken
  }

  return { add, find, sweep, take }
}

/** Puts the seat where its place says, once. */
export function enlist<S extends Placed>(list: S[], seat: S): void {
  let low = 0
  let high = list.length
  while (low < high) {
    const middle = (low + high) >>> 1
    const other = list[middle]
    if (other === seat) return
    if (other !== undefined && other.place < seat.place) low = middle + 1
    else high = middle
  }
  if (low === list.length) list.push(seat)
  else list.splice(low, 0, seat)
}

/** Leaves in the list those seats alone, in the same order. */
export function keepThose<S>(list: S[], keep: (seat: S) => boolean): void {
  let kept = 0
  for (const seat of list) if (keep(seat)) list[kept++] = seat
  list.length = kept
}

/** Both lists as one, in order of place; a seat that is in both is in it once. */
function merged<S extends Placed>(left: readonly S[], right: readonly S[]): S[] {
  const both: S[] = []
  let at = 0
  for (const seat of left) {
    for (let other = right[at]; other !== undefined && other.place <= seat.place; other = right[++at]) if (other !== seat) both.push(other)
    both.push(seat)
  }
  return both.concat(right.slice(at))
}

// What every page has: times in words, messages that go away, the number of questions that wait, small form aids.
import "./times.js";
import "./toast.js";
import "./waiting.js";
import "./notify.js";
import "./forms.js";
import "./refresh.js";
